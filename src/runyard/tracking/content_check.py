"""Verification of stored files: each is named by the hash of its content, which is compared when the file is read.

A result is remembered for an hour for as long as the file has the same inode, size and modification time. So a page of
previews or the ranges of a video cost one hash, and damage that leaves no trace in the file's times is noticed later.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from pathlib import Path

from runyard import clock
from runyard.errors import FileCorrupted
from runyard.posix import sha256

_VALID_S = 3600.0
_MAX_REMEMBERED = 50_000
_Identity = tuple[int, int, int, int, str]

_results: OrderedDict[_Identity, tuple[bool, float]] = OrderedDict()
_lock = threading.Lock()


def check_content(path: Path, digest: str, name: str) -> None:
    """Verify that a file has the content with this hash; reads it unless that was done before.

    Args:
        path: The stored file.
        digest: The hash of the content that was stored.
        name: The user's name of the file, for the error.

    Raises:
        FileCorrupted: The file is missing or has another content.
    """
    try:
        identity = _identity(path, digest)
        is_intact = _recall(identity)
        if is_intact is None:
            is_intact = sha256.of_file(path) == digest
            _remember(identity, is_intact)
    except OSError as error:
        raise _error(path, name, error.strerror or str(error)) from error
    if not is_intact:
        raise damage_error(path, name)


def is_intact(path: Path, digest: str) -> bool:
    try:
        check_content(path, digest, path.name)
    except FileCorrupted:
        return False
    return True


def known_result(path: Path, digest: str) -> bool | None:
    """The result of an earlier check that is still valid; None if the file must be read. Raises OSError."""
    return _recall(_identity(path, digest))


class StreamCheck:
    """Verifies a file while it is sent: feed every piece, then call ``finish`` before the last one is sent."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path, self._digest = path, digest
        self._identity = _identity(path, digest)
        self._hash = hashlib.sha256()

    def update(self, piece: bytes) -> None:
        self._hash.update(piece)

    def finish(self, name: str) -> None:
        """Raises FileCorrupted if the content was a different one."""
        is_intact = self._hash.hexdigest() == self._digest
        _remember(self._identity, is_intact)
        if not is_intact:
            raise damage_error(self._path, name)


def damage_error(path: Path, name: str) -> FileCorrupted:
    return _error(path, name, "its content does not match its checksum")


def _error(path: Path, name: str, reason: str) -> FileCorrupted:
    return FileCorrupted(
        f"the stored file {name!r} is damaged: {reason} ({path})",
        hint="check the disk; storing the same content again repairs the file, and `runyard fsck` lists all damage",
        path=str(path),
    )


def _identity(path: Path, digest: str) -> _Identity:
    status = os.stat(path)  # noqa: PTH116 - faster than Path.stat
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, digest


def _recall(identity: _Identity) -> bool | None:
    with _lock:
        result = _results.get(identity)
        if result is None:
            return None
        is_intact, checked_at = result
        if clock.monotonic() - checked_at > _VALID_S:
            del _results[identity]
            return None
        return is_intact


def _remember(identity: _Identity, is_intact: bool) -> None:
    with _lock:
        _results.pop(identity, None)
        _results[identity] = (is_intact, clock.monotonic())
        while len(_results) > _MAX_REMEMBERED:
            _results.popitem(last=False)
