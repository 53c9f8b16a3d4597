"""All secrets of one yard, and the redaction of values that it has opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from pathlib import Path

from runyard.secrets.cipher import Cipher
from runyard.secrets.named import NamedSecrets
from runyard.spec.redaction import Redactor, mask_text


class Vault:
    def __init__(self, home: Path) -> None:
        self.cipher = Cipher(home)
        self.named = NamedSecrets(home, self.cipher)
        self._opened: set[str] = set()
        self._redactor = Redactor(())
        self._lock = threading.Lock()

    def remember(self, values: Iterable[str]) -> None:
        """Redact these values from now on: they are in the yard's memory and could get into a message."""
        with self._lock:
            new = set(values) - self._opened
            if new:
                self._opened |= new
                self._redactor = Redactor(self._opened)

    def redact(self, text: str) -> str:
        """Mask opened values, and everything that looks like a secret."""
        return mask_text(self._redactor.text(text))


class RedactingFormatter(logging.Formatter):
    """Formats a log record as another formatter does, without secrets; also its traceback."""

    def __init__(self, formatter: logging.Formatter, vault: Vault) -> None:
        super().__init__()
        self._formatter, self._vault = formatter, vault

    def format(self, record: logging.LogRecord) -> str:
        return self._vault.redact(self._formatter.format(record))


def redact_logs(vault: Vault) -> None:
    """Redact what the yard's process logs."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(RedactingFormatter(handler.formatter or logging.Formatter(), vault))
