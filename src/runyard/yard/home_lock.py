"""The lock on `yard.lock`, which makes this process the yard of its home folder."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.posix import file_lock


class HomeLock:
    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    @property
    def is_valid(self) -> bool:
        """False if the locked file was removed or replaced, so that another process can lock its successor."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def renew(self) -> bool:
        """Lock the file again if it was removed; False if another process has locked it."""
        if self.is_valid:
            return True
        descriptor = file_lock.acquire(self._path)
        if descriptor is None:
            return False
        os.close(self._descriptor)
        self._descriptor = descriptor
        return True
