"""Atomic file writes whose errors are SnapshotExceptions with a hint."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runyard.errors import SnapshotException
from runyard.posix import atomic_write

_DISK_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))  # a quota needs the same remedy as a full disk


@contextmanager
def replace_file(destination: Path) -> Iterator[Path]:
    """Like ``atomic_write.replace_file``, but creates the parent folder and translates OSError.

    Every OSError inside counts as a failed write, so errors of reading must be translated inside the block.
    """
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write.replace_file(destination) as draft:
            yield draft
    except OSError as error:
        raise write_error(destination, error) from error


def write_error(destination: Path, error: OSError) -> SnapshotException:
    if error.errno in _DISK_FULL:
        message = f"no space left to write {destination}: {error.strerror}"
        hint = f"free some space on the disk of {destination.parent}; the incomplete file was removed"
    else:
        message = f"cannot write {destination}: {error.strerror or error}"
        hint = f"check the owner and permissions of {destination.parent}"
    return SnapshotException(message, hint=hint, inner_exception=error, path=str(destination))
