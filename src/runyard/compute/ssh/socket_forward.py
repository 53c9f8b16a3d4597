"""Forwards the yard's unix socket to a host: connections of scripts and agents there go through the SSH session."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard.compute.ssh.framing import CHUNK_BYTES, ConnectionLost
from runyard.posix import unix_socket

_SEND_TIMEOUT_S = 5
_numbers = itertools.count(1)  # for all sockets of this process: one may be reopened while connections are open
Send = Callable[[dict[str, Any], bytes], None]


class ForwardedConnections:
    """The connections on this side, by number; each has a counterpart with the same number on the other side."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    def add(self, number: int, connection: socket.socket) -> None:
        # a process that does not read must not block the session that all connections share
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT_S, 0))
        with self._lock:
            self._connections[number] = connection
        threading.Thread(target=self._pump, args=(number, connection), name=f"forward-{number}", daemon=True).start()

    def receive(self, number: int, data: bytes) -> None:
        """Pass data from the other side on; no data means that the other side closed the connection."""
        with self._lock:
            connection = self._connections.get(number) if data else self._connections.pop(number, None)
        if connection is None:
            return
        try:
            if data:
                connection.sendall(data)
            else:
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            connections = list(self._connections.values())
            self._connections.clear()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _pump(self, number: int, connection: socket.socket) -> None:
        with connection, suppress(OSError, ConnectionLost):
            while True:
                try:
                    data = connection.recv(CHUNK_BYTES)
                except OSError:
                    data = b""
                self._send({"connection": number}, data)
                if not data:
                    break
        with self._lock:
            self._connections.pop(number, None)


def listen(path: Path, connections: ForwardedConnections, send: Send) -> None:
    """Accept connections on this machine for as long as the process lives."""
    listener = unix_socket.bind(path, socket.SOCK_STREAM)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            number = next(_numbers)
            with suppress(ConnectionLost):
                send({"connection": number, "opened": True}, b"")
                connections.add(number, connection)

    threading.Thread(target=accept, name="listen", daemon=True).start()
