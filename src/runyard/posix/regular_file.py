"""Reads files that a training script may have replaced: by a link, a pipe, a device, a folder, or by data of any size.

Opening a pipe would block the caller forever, a link may lead out of the run's folder, and a mapped file that is
truncated kills the process that reads the mapping.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Union

_NEVER_BLOCK = os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENODEV, errno.ENOTDIR)


class NotRegularFile(OSError):
    """The path leads to something that is not a regular file."""


UNREADABLE = (FileNotFoundError, PermissionError, NotRegularFile)  # the file is to blame, not the machine


def open_regular(path: Union[str, Path], flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file and return its descriptor. Does not block, and does not follow a link at the end of the path.

    Raises:
        NotRegularFile: The path is a link, a folder, a pipe, a socket or a device.
        OSError: It cannot be opened for another reason.
    """
    try:
        descriptor = os.open(path, flags | _NEVER_BLOCK, mode)
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            raise NotRegularFile(error.errno, "not a regular file", os.fspath(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFile(errno.EINVAL, "not a regular file", os.fspath(path))
    return descriptor


def read_regular(path: Union[str, Path], limit: int) -> bytes:
    """The first ``limit`` bytes of a regular file. Raises like :func:`open_regular`."""
    descriptor = open_regular(path)
    try:
        return read_range(descriptor, 0, limit)
    finally:
        os.close(descriptor)


def read_range(descriptor: int, begin: int, limit: int) -> bytes:
    """At most ``limit`` bytes from ``begin`` on; fewer only at the end of the file."""
    size = min(limit, os.fstat(descriptor).st_size - begin)
    if size <= 0:
        return b""
    data = os.pread(descriptor, size, begin)
    if len(data) == size:
        return data
    parts = [data]
    while data and size > len(data):  # the kernel returns at most 2 GB at a time
        size, begin = size - len(data), begin + len(data)
        data = os.pread(descriptor, size, begin)
        parts.append(data)
    return b"".join(parts)
