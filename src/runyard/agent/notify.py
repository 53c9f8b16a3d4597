"""Notifications from agents: a datagram with the run's id, sent after the run's folder has changed.

There is no reply and no guarantee of delivery: the listener polls the run's folder as well.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runyard.posix import unix_socket

_MAX_BYTES = 4096
_CHECK_INTERVAL_S = 2.0


def notify(socket_path: str, run_id: str, timeout_s: float) -> None:
    """Send a notification. Errors are ignored."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(timeout_s)
        sender.sendto(os.fsencode(run_id), socket_path)


class NotificationListener:
    """Calls ``on_notify`` with the run id of each notification, one at a time: the callback must return quickly.

    A socket whose file was removed is created again: without it, every change would wait for the next poll.
    """

    def __init__(self, path: Path, on_notify: Callable[[str], None]) -> None:
        self._path, self._on_notify = path, on_notify
        self._closed = threading.Event()
        self._socket = self._bind()
        threading.Thread(target=self._listen, name="notification-listener", daemon=True).start()

    def close(self) -> None:
        """Do not restore the socket anymore."""
        self._closed.set()

    def _bind(self) -> socket.socket:
        bound = unix_socket.bind(self._path, socket.SOCK_DGRAM)
        bound.settimeout(_CHECK_INTERVAL_S)
        return bound

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                run_id = self._socket.recv(_MAX_BYTES)
            except socket.timeout:
                self._restore()
                continue
            except OSError:  # closed
                return
            if run_id:
                self._on_notify(os.fsdecode(run_id))

    def _restore(self) -> None:
        with suppress(OSError):  # the folder is gone; tried again
            if not self._closed.is_set() and not unix_socket.is_open(self._path):
                previous_socket, self._socket = self._socket, self._bind()
                previous_socket.close()
