"""The yard's socket, on a host: what scripts and agents there say to it goes through the courier's connection."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard.compute.ssh.framing import CHUNK, Cut
from runyard.posix import unix_socket

_SEND_S = 5
_numbers = itertools.count(1)  # of all sockets that this process opens: one may be opened again while pipes are open
Send = Callable[[dict[str, Any], bytes], None]


class Pipes:
    """Connections on this side, by number; the other side has one of the same number for each."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._open: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    def add(self, number: int, connection: socket.socket) -> None:
        # somebody who does not read must not hold up the one connection that all others share
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))
        with self._lock:
            self._open[number] = connection
        threading.Thread(target=self._pump, args=(number, connection), name=f"pipe-{number}", daemon=True).start()

    def receive(self, number: int, data: bytes) -> None:
        """No data means: the other side has hung up."""
        with self._lock:
            connection = self._open.get(number) if data else self._open.pop(number, None)
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
            connections = list(self._open.values())
            self._open.clear()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _pump(self, number: int, connection: socket.socket) -> None:
        with connection, suppress(OSError, Cut):
            while True:
                try:
                    data = connection.recv(CHUNK)
                except OSError:
                    data = b""
                self._send({"pipe": number}, data)
                if not data:
                    break
        with self._lock:
            self._open.pop(number, None)


def listen(path: Path, pipes: Pipes, send: Send) -> None:
    """Takes connections of this machine, for as long as the process lives."""
    listening = unix_socket.bind(path, socket.SOCK_STREAM)

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            number = next(_numbers)
            with suppress(Cut):
                send({"pipe": number, "opened": True}, b"")
                pipes.add(number, connection)

    threading.Thread(target=accept, name="listen", daemon=True).start()


def is_heard(path: Path) -> bool:
    """Whether somebody is behind a socket of any kind. They do not notice: a datagram's socket never gets through to a
    listening one, but what it is told tells the living from the dead."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        return asking.connect_ex(os.fspath(path)) not in (errno.ENOENT, errno.ECONNREFUSED)
