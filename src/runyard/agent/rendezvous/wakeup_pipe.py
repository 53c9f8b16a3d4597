"""A named pipe by which the processes of a node send lines to their agent and wake it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runyard.agent.rendezvous.frame_socket import enable_sigio

_READ_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 20  # the script can write to the pipe, too


class WakeupPipe:
    """The owner must block ``SIGIO`` and wait for it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "wakeup")
        with suppress(FileExistsError):
            os.mkfifo(self.path, 0o600)
        self._pipe = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Without a writer, the pipe would signal end-of-file repeatedly. The writer is a separate descriptor: one
        # opened for both would be signaled by each read of its owner, and the agent would never sleep.
        self._writer = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._partial_line = b""
        enable_sigio(self._pipe)

    def read_lines(self) -> list[str]:
        """The complete lines since the last call, without empty ones, which only wake the agent."""
        with suppress(BlockingIOError):
            self._partial_line += os.read(self._pipe, _READ_BYTES)
        *lines, self._partial_line = self._partial_line.split(b"\n")
        if len(self._partial_line) > _MAX_LINE_BYTES:
            self._partial_line = b""
        return [line.decode("utf-8", "surrogateescape") for line in lines if line]

    def close(self) -> None:
        os.close(self._pipe)
        os.close(self._writer)
