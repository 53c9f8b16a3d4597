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


def notify(socket_path: str, run_id: str, timeout_s: float) -> None:
    """Send a notification. Errors are ignored."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(timeout_s)
        sender.sendto(os.fsencode(run_id), socket_path)


class NotificationListener:
    """Calls ``on_notify`` with the run id of each notification, one at a time: the callback must return quickly."""

    def __init__(self, path: Path, on_notify: Callable[[str], None]) -> None:
        self._socket = unix_socket.bind(path, socket.SOCK_DGRAM)
        self._on_notify = on_notify
        threading.Thread(target=self._listen, name="notification-listener", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                run_id = self._socket.recv(_MAX_BYTES)
            except OSError:  # closed
                return
            if run_id:
                self._on_notify(os.fsdecode(run_id))
