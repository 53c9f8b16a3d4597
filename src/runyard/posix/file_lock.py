"""Advisory file locks that the kernel releases when their process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time

from runyard.posix.regular_file import NotRegularFile, open_regular, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Optional

_POLL_S = 0.02


def acquire(path: Path, *, timeout_s: Optional[float] = 0.0) -> Optional[int]:
    """Lock ``path`` exclusively and write this process's id into it.

    Args:
        path: The lock file; created if it does not exist.
        timeout_s: Seconds to keep trying; None waits without limit. A reader that probes the lock holds it for some
            microseconds, so an owner that must not fail should wait a little.

    Returns:
        The open descriptor, which holds the lock until it is closed; None if another process holds it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if deadline is None else fcntl.LOCK_NB))
            break
        except BlockingIOError:
            if deadline is not None and time.monotonic() >= deadline:
                os.close(lock)
                return None
            time.sleep(_POLL_S)
    write_holder(lock)
    return lock


def write_holder(lock: int) -> None:
    """Write this process's id into the lock file; needed again after a fork, which keeps the lock."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def forget_holder(path: Path) -> None:
    """Delete the process id of the last holder from the lock file, if the lock is free."""
    try:
        lock = open_regular(path, os.O_RDWR)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def is_held(path: Path) -> bool:
    """True while a process holds the lock; False if it is free, or there is no such file."""
    try:
        lock = open_regular(path)
    except (FileNotFoundError, NotRegularFile):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(lock)


def holder(path: Path) -> Optional[int]:
    """The process id that the holder wrote (0 before it has written one); None if the lock is free."""
    if not is_held(path):
        return None
    try:
        text = read_regular(path, 32).strip()
    except (FileNotFoundError, NotRegularFile):
        return None
    return int(text) if text.isdigit() else 0
