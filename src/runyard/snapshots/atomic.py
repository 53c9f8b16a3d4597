"""Files that appear whole or not at all, also when the disk is full or the process is killed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from runyard.errors import SnapshotException

# a quota and a limit on file sizes feel like a full disk, and ask for the same
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@contextlib.contextmanager
def whole_file(destination: Path, *, durable: bool = True) -> Iterator[Path]:
    """A name beside ``destination`` to write to: renamed to it at the end, removed if anything goes wrong.

    An ``OSError`` inside is taken as one of writing, so what reads in there turns its own into something else.
    """
    partial = destination.with_name(f".{os.urandom(8).hex()}.part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if durable:
            flush_to_disk(partial)
        partial.replace(destination)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(destination, error) from error
        raise


def cannot_write(destination: Path, error: OSError) -> SnapshotException:
    if error.errno in _NO_ROOM:
        message = f"no space left to write {destination}: {error.strerror}"
        hint = f"free some space on the disk of {destination.parent}; what was half written is removed"
    else:
        message = f"{destination} cannot be written: {error.strerror or error}"
        hint = f"see who owns {destination.parent} and whether it can be written to"
    return SnapshotException(message, hint=hint, inner_exception=error, path=str(destination))


def flush_to_disk(path: Path) -> None:
    # without this a power cut may keep the new name and lose the content: a snapshot that exists and is empty
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
