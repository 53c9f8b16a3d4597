"""Credentials of datastores: a file that only its owner can read, and nowhere else."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from runyard.errors import DataException

NAME = "datastore-credentials.json"


class Secrets:
    def __init__(self, home: Path) -> None:
        self._path = home / NAME
        self._lock = threading.Lock()

    def get(self, datastore: str) -> dict[str, str]:
        return self._read().get(datastore, {})

    def put(self, datastore: str, credentials: dict[str, str]) -> None:
        """None of them: the datastore has none of its own any more."""
        with self._lock:
            everything = self._read()
            if credentials:
                everything[datastore] = credentials
            elif everything.pop(datastore, None) is None:
                return
            draft = self._path.with_name(f".{NAME}.{os.urandom(4).hex()}")
            # made unreadable for others before there is anything to read
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(file, "w", encoding="utf-8") as out:
                json.dump(everything, out, indent=1)
            draft.replace(self._path)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            if self._path.stat().st_mode & 0o077:
                self._path.chmod(0o600)  # somebody copied it carelessly
            found: dict[str, dict[str, str]] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataException(
                f"the credentials of the datastores cannot be read: {self._path}: {error}",
                hint="move the file away and register the datastores again",
            ) from error
        return found
