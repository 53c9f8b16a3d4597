"""Ports that are ours from before they are told to anybody until the processes that use them have ended."""

from __future__ import annotations

import socket


class Ports:
    """Bound and never listening: nobody is given them by chance, and a server that lets addresses be used again, as
    gRPC's and torch's do, listens there."""

    def __init__(self, count: int) -> None:
        self._held = [_reserved() for _ in range(count)]

    @property
    def numbers(self) -> list[str]:
        return [str(held.getsockname()[1]) for held in self._held]

    def close(self) -> None:
        for held in self._held:
            held.close()


def _reserved() -> socket.socket:
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("", 0))
    return held
