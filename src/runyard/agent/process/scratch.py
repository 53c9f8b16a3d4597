"""Temporary folders of one node of a run, outside of the run's folder: for pipes, sockets and shared memory.

A killed agent cannot delete them. The yard does so on its machine; on other machines, such as Slurm nodes, the next
agent of the same user does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard.posix import file_lock, sha256

_LOCK = "agent.lock"
_ABANDONED_AFTER_S = 3600.0  # for other processes of the run that outlive their agent a little
_MAX_PATH_CHARACTERS = 60  # launchers create sockets below it, and the length of a socket's path is limited


class Scratch:
    """Named after the run's tag, so that a later agent of the run can clear the folders of a killed one."""

    def __init__(self, tag: str, node_rank: int) -> None:
        clear_abandoned(_ABANDONED_AFTER_S)
        self.folder = _create_private(_temporary_folder(), f"{_prefix(tag)}{node_rank}")
        can_share = os.access("/dev/shm", os.W_OK | os.X_OK)
        self.shared_memory = _create_private("/dev/shm", f"{_prefix(tag)}{node_rank}") if can_share else self.folder
        # held until the process ends: another agent must not take the folders for abandoned ones
        self._locks = [file_lock.acquire(folder / _LOCK) for folder in {self.folder, self.shared_memory}]

    def clear(self) -> None:
        for lock in self._locks:
            if lock is not None:
                os.close(lock)
        self._locks = []
        for folder in (self.folder, self.shared_memory):
            shutil.rmtree(folder, ignore_errors=True)


def clear_leftovers(tag: str, node_rank: Optional[int] = None) -> None:
    """Delete the folders of killed agents on this machine: of one node, or of all nodes of the run. To be called after
    their last process has ended."""
    name = f"{_prefix(tag)}{'*' if node_rank is None else node_rank}"
    for parent in (_temporary_folder(), "/dev/shm"):
        for folder in Path(parent).glob(name):
            shutil.rmtree(folder, ignore_errors=True)


def clear_abandoned(age_s: float) -> None:
    """Delete folders of this user's killed agents of any run that are older than ``age_s``."""
    for parent in {_temporary_folder(), "/dev/shm"}:
        for lock in Path(parent).glob(f"runyard-{os.getuid()}-*/{_LOCK}"):
            with suppress(OSError):
                if time.time() - lock.stat().st_mtime > age_s and not file_lock.is_held(lock):
                    shutil.rmtree(lock.parent, ignore_errors=True)


def _prefix(tag: str) -> str:
    return f"runyard-{os.getuid()}-{sha256.of_text(tag)[:12]}-"


def _temporary_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) < _MAX_PATH_CHARACTERS else "/tmp"


def _create_private(parent: str, name: str) -> Path:
    """A folder that only this user can access. In a shared parent, another user may have created the name first."""
    path = Path(parent, name)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if status.st_uid == os.getuid() and not path.is_symlink() and status.st_mode & 0o077 == 0:
            return path
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="runyard-", dir=parent))
