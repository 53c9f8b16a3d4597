"""How others wake an agent: a named pipe that they write a line into, and the kernel signals that it has one."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_MOST = 1 << 20


class Bell:
    """``SIGIO`` must be blocked and waited for by whoever owns it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "bell")
        with suppress(FileExistsError):
            os.mkfifo(self.path, 0o600)
        self._pipe = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # A pipe without a writer would tell of its end again and again. A descriptor of its own: one that may also
        # write is signalled by its owner's every read, and the agent would never sleep.
        self._writer = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._half = b""
        fcntl.fcntl(self._pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self._pipe, fcntl.F_SETFL, fcntl.fcntl(self._pipe, fcntl.F_GETFL) | os.O_ASYNC)

    def hear(self) -> list[str]:
        """The whole lines since the last time, without those that only rang."""
        with suppress(BlockingIOError):
            self._half += os.read(self._pipe, _MOST)
        *lines, self._half = self._half.split(b"\n")
        return [line.decode("utf-8", "surrogateescape") for line in lines if line]

    def close(self) -> None:
        os.close(self._pipe)
        os.close(self._writer)


def ring(path: str) -> None:
    """An agent that is gone, or on another machine, hears nothing and looks for itself a little later."""
    with suppress(OSError):
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, b"\n")
        finally:
            os.close(pipe)
