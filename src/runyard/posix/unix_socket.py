"""Unix sockets that only their owner can reach."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Optional

_BACKLOG = 512


def connect(path: os.PathLike[str] | str, timeout_s: Optional[float]) -> socket.socket:
    """A connected stream socket. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(os.fspath(path))
    except BaseException:
        connection.close()
        raise
    return connection


def bind(path: Path, kind: socket.SocketKind) -> socket.socket:
    """A bound (and, for streams, listening) socket that replaces a stale one. It appears only when it is ready."""
    # short, because the length of a socket's path is limited to about 100 bytes; one per socket of this process
    draft = path.with_name(f"{os.getpid()}{path.name[:1]}")
    draft.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, kind)
    try:
        bound.bind(str(draft))
        draft.chmod(0o600)
        if kind == socket.SOCK_STREAM:
            bound.listen(_BACKLOG)
        draft.replace(path)
    except BaseException:
        bound.close()
        raise
    return bound


def is_open(path: os.PathLike[str] | str) -> bool:
    """True if a process has this socket open. The process does not notice.

    A datagram socket cannot connect to a stream socket, but the error distinguishes a live one from a stale file.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(os.fspath(path)) not in (errno.ENOENT, errno.ECONNREFUSED)


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A short name for a socket in a folder whose path may exceed the limit of 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
