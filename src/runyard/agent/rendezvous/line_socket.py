"""Lines over one TCP connection that never makes its agent wait: the kernel signals when there is something."""

from __future__ import annotations

import fcntl
import os
import socket
from collections import deque
from typing import Optional

_MOST = 1 << 16
_LONGEST = 8 << 20  # of a line; more than the last words of many processes
_RESET = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class Connection:
    """``SIGIO`` must be blocked and waited for by whoever owns it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._in, self._out = b"", b""
        self._lines: deque[bytes] = deque()
        self.is_closed = False  # by the other side, or by the kernel for it: its process is gone
        self.is_reset = False  # most likely so as well, unless something between the two did it
        self.is_broken = False  # of no use any more
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        signal_when_ready(sock.fileno())

    def put(self, line: bytes) -> None:
        self._out += line + b"\n"
        self.flush()

    def flush(self) -> None:
        try:
            while self._out and not self.is_over:
                self._out = self._out[self._socket.send(self._out) :]
        except BlockingIOError:
            return
        except _RESET:
            self.is_reset = True
        except OSError:  # the network is away: the kernel goes on trying, and silence is judged elsewhere
            return

    def take(self, longest: int = _LONGEST) -> Optional[bytes]:
        """The next whole line, if it has come."""
        if not self._lines:
            self._receive(longest)
        return self._lines.popleft() if self._lines else None

    @property
    def is_over(self) -> bool:
        return self.is_closed or self.is_reset or self.is_broken

    def close(self) -> None:
        self.is_broken = True
        self._socket.close()

    def _receive(self, longest: int) -> None:
        try:
            while not self.is_over:
                data = self._socket.recv(_MOST)
                self.is_closed = not data
                self._in += data
                if len(self._in) > longest and b"\n" not in self._in:
                    self.is_broken = True  # nobody of ours speaks so
        except BlockingIOError:
            pass
        except _RESET:
            self.is_reset = True
        except OSError:
            self.is_broken = True
        *lines, self._in = self._in.split(b"\n")
        self._lines.extend(lines)


def signal_when_ready(descriptor: int) -> None:
    """SIGIO to this process whenever there is something to read, to write or to accept."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
