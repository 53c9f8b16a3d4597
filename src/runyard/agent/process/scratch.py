"""Folders of one node of a run that are not the run's: for pipes, and for memory that its processes share."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

_LONGEST = 60  # launchers put sockets below it, whose paths the kernel keeps short


class Scratch:
    """Named after the run's tag, so that a later agent of the same run can clear what a killed one left."""

    def __init__(self, tag: str, node_rank: int) -> None:
        name = f"runyard-{os.getuid()}-{hashlib.sha256(tag.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
        place = tempfile.gettempdir()
        self.folder = _made(place if len(place) < _LONGEST else "/tmp", f"{name}-{node_rank}")
        can_share = os.access("/dev/shm", os.W_OK | os.X_OK)
        self.shared_memory = _made("/dev/shm", f"{name}-{node_rank}") if can_share else self.folder

    def clear(self) -> None:
        for folder in (self.folder, self.shared_memory):
            shutil.rmtree(folder, ignore_errors=True)


def clear_left(tag: str) -> None:
    """After the last process of a run: what agents that were killed could not clear on this machine."""
    for place in (_place(), "/dev/shm"):
        for folder in Path(place).glob(f"{_name(tag)}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _name(tag: str) -> str:
    return f"runyard-{os.getuid()}-{hashlib.sha256(tag.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def _place() -> str:
    place = tempfile.gettempdir()
    return place if len(place) < _LONGEST else "/tmp"


def _made(place: str, name: str) -> Path:
    """Ours alone: in a folder that everybody may write to, somebody else may have been there first."""
    wanted = Path(place, name)
    try:
        wanted.mkdir(mode=0o700, exist_ok=True)
        found = wanted.lstat()
        if found.st_uid == os.getuid() and not wanted.is_symlink() and found.st_mode & 0o077 == 0:
            return wanted
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="runyard-", dir=place))
