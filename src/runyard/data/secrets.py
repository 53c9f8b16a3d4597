"""Credentials of datastores, encrypted in a file that only its owner can read."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

from runyard.errors import DataException
from runyard.posix.atomic_write import write_text
from runyard.secrets.cipher import Cipher

NAME = "datastore-credentials.json"
_PURPOSE = "the credentials of the datastores"


class Secrets:
    def __init__(self, home: Path) -> None:
        self._path, self._cipher = home / NAME, Cipher(home)
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
            self._write(everything)

    def encrypt(self) -> None:
        """Encrypt a file that an earlier version wrote in clear."""
        with self._lock:
            if self._path.exists() and not _is_sealed(self._load()):
                self._write(self._read())

    def _write(self, everything: dict[str, dict[str, str]]) -> None:
        sealed = self._cipher.seal(json.dumps(everything), _PURPOSE)
        write_text(self._path, json.dumps({"sealed": base64.b64encode(sealed).decode()}), mode=0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        content = self._load()
        if _is_sealed(content):
            content = json.loads(self._cipher.open(base64.b64decode(content["sealed"]), _PURPOSE))
        return content

    def _load(self) -> dict[str, Any]:
        try:
            if self._path.stat().st_mode & 0o077:
                self._path.chmod(0o600)  # a restored or copied home may have lost the mode
            content: dict[str, Any] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataException(
                f"cannot read the credentials of the datastores: {self._path}: {error}",
                hint="move the file away and register the datastores again",
            ) from error
        return content


def _is_sealed(content: dict[str, Any]) -> bool:
    return isinstance(content.get("sealed"), str)  # the entry of a datastore of that name is an object
