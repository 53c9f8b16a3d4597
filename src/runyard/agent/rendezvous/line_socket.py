"""Non-blocking exchange of lines over a TCP connection; the kernel sends SIGIO when it is ready."""

from __future__ import annotations

import fcntl
import os
import socket
from collections import deque
from typing import Optional

_RECEIVE_BYTES = 1 << 16
_MAX_LINE_BYTES = 8 << 20  # more than the log tails of many processes
_RESET = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class LineSocket:
    """The owner must block ``SIGIO`` and wait for it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._in, self._out = b"", b""
        self._lines: deque[bytes] = deque()
        self.is_closed = False  # by the other side, or by the kernel because its process died
        self.is_reset = False  # most likely also because its process died, unless a router did it
        self.is_broken = False  # unusable because of an error on this side
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        enable_sigio(sock.fileno())

    def send_line(self, line: bytes) -> None:
        self._out += line + b"\n"
        self.flush()

    def flush(self) -> None:
        try:
            while self._out and not self.has_ended:
                self._out = self._out[self._socket.send(self._out) :]
        except BlockingIOError:
            return
        except _RESET:
            self.is_reset = True
        except OSError:  # the network is down: the kernel keeps trying, and the link has a timeout
            return

    def read_line(self, max_bytes: int = _MAX_LINE_BYTES) -> Optional[bytes]:
        """The next complete line; None if it has not arrived yet."""
        if not self._lines:
            self._receive(max_bytes)
        return self._lines.popleft() if self._lines else None

    @property
    def has_ended(self) -> bool:
        return self.is_closed or self.is_reset or self.is_broken

    def close(self) -> None:
        self.is_broken = True
        self._socket.close()

    def _receive(self, max_bytes: int) -> None:
        try:
            while not self.has_ended:
                data = self._socket.recv(_RECEIVE_BYTES)
                self.is_closed = not data
                self._in += data
                if len(self._in) > max_bytes and b"\n" not in self._in:
                    self.is_broken = True  # not one of our agents
        except BlockingIOError:
            pass
        except _RESET:
            self.is_reset = True
        except OSError:
            self.is_broken = True
        *lines, self._in = self._in.split(b"\n")
        self._lines.extend(lines)


def enable_sigio(descriptor: int) -> None:
    """Let the kernel send SIGIO to this process when the descriptor is ready to read, write or accept."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
