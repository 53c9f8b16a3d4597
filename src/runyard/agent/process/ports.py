"""Reserved TCP ports."""

from __future__ import annotations

import socket


class ReservedPorts:
    """Ports that are bound but not listening, from before they are announced until the run has ended.

    The system does not assign them to other processes, while a server that sets SO_REUSEADDR or SO_REUSEPORT, as gRPC
    and torch do, can listen on them.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [_bind_free_port() for _ in range(count)]

    @property
    def numbers(self) -> list[str]:
        return [str(sock.getsockname()[1]) for sock in self._sockets]

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


def _bind_free_port() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("", 0))
    return sock
