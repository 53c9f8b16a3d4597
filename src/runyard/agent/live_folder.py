"""The folder of a run at its current path."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.spec.folder import RunFolder


class LiveRunFolder(RunFolder):
    """Follows the folder when the yard's home is moved or renamed: the agent's last words belong to the run.

    A home that is copied to another disk and then deleted cannot be followed.
    """

    _path: Path
    _descriptor: int

    @property
    def root(self) -> Path:
        try:
            folder = os.fstat(self._descriptor)
            if not _is(self._path, folder):
                current = Path(f"/proc/self/fd/{self._descriptor}").readlink()
                if _is(current, folder):
                    self._path = current
        except OSError:  # there is no folder, or no /proc
            pass
        return self._path

    @root.setter
    def root(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1

    def node(self, node_rank: int) -> RunFolder:
        return self if node_rank == 0 else LiveRunFolder(super().node(node_rank).root)


def _is(path: Path, folder: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), folder)
    except OSError:
        return False
