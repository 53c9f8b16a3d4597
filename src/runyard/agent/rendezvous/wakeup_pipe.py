"""How processes of a node wake its agent: a named pipe that they write a line into, and the kernel signals that."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runyard.agent.rendezvous.line_socket import signal_when_ready

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
        signal_when_ready(self._pipe)

    def hear(self) -> list[str]:
        """The whole lines since the last time, without those that only rang."""
        with suppress(BlockingIOError):
            self._half += os.read(self._pipe, _MOST)
        *lines, self._half = self._half.split(b"\n")
        return [line.decode("utf-8", "surrogateescape") for line in lines if line]

    def close(self) -> None:
        os.close(self._pipe)
        os.close(self._writer)
