"""Facts about processes and the machine from /proc. Imports only ``os``: training scripts load this module."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

_DEAD = (b"Z", b"X", b"x")


def boot_id() -> str:
    """Identifies this boot of this machine; the host name where the kernel has no boot id."""
    try:
        return read("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
    except OSError:
        return os.uname().nodename


def process_ids() -> Iterator[int]:
    """Ids of all processes; none where there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            yield int(name)


class Stat:
    """The fields of ``/proc/PID/stat`` that Runyard uses. Raises OSError if the process does not exist."""

    __slots__ = ("cpu_ticks", "parent", "pid", "resident_pages", "session", "start_ticks", "state", "threads")

    def __init__(self, pid: int) -> None:
        # the program name in parentheses may contain spaces and parentheses: count the fields from its end
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.cpu_ticks = int(fields[11]) + int(fields[12])
        self.threads = int(fields[17])
        self.start_ticks = int(fields[19])
        self.resident_pages = int(fields[21])

    @property
    def has_ended(self) -> bool:
        """True for a zombie. With threads left, only the first thread of the process has ended."""
        return self.state in _DEAD and self.threads <= 1


def stat(pid: int) -> Optional[Stat]:
    """None if the process does not exist."""
    try:
        return Stat(pid)
    except (OSError, IndexError):
        return None


def start_ticks(pid: int) -> Optional[int]:
    """Start time of a process in clock ticks since boot; None if it has ended; 0 if it lives and there is no /proc."""
    process = stat(pid)
    if process is not None:
        return None if process.state in _DEAD else process.start_ticks
    if os.path.isdir("/proc/self"):
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


def has_open(pid: int, path: os.PathLike[str] | str) -> bool:
    """True if a process of this user has the file open."""
    try:
        file = os.stat(path)
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), file):
                return True
        except OSError:  # closed in the meantime
            continue
    return False


def environment(pid: int) -> bytes:
    """The NUL-separated variables that a process was started with, with a NUL at both ends; empty if unreadable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except OSError:
        return b""


def read(path: str) -> bytes:
    """The first 4096 bytes of a small file, without a Python file object."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
