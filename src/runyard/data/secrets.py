"""Credentials of datastores, stored in a file that only its owner can read."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from runyard.errors import DataException
from runyard.posix.atomic_write import write_text

NAME = "datastore-credentials.json"


class Secrets:
    def __init__(self, home: Path) -> None:
        self._path = home / NAME
        self._lock = threading.Lock()

    def get(self, datastore: str) -> dict[str, str]:
        return self._read().get(datastore, {})

    def put(self, datastore: str, credentials: dict[str, str]) -> None:
        """Replace the credentials of a datastore; an empty dictionary removes them."""
        with self._lock:
            everything = self._read()
            if credentials:
                everything[datastore] = credentials
            elif everything.pop(datastore, None) is None:
                return
            write_text(self._path, json.dumps(everything, indent=1), mode=0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            if self._path.stat().st_mode & 0o077:
                self._path.chmod(0o600)  # a restored or copied home may have lost the mode
            credentials: dict[str, dict[str, str]] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataException(
                f"cannot read the credentials of the datastores: {self._path}: {error}",
                hint="move the file away and register the datastores again",
            ) from error
        return credentials
