"""Accepts TCP connections while enough descriptors are free for the owner's unix socket, the database and files."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

log = logging.getLogger("runyard.yard")
_RESERVED = 256
_ACCEPTS_PER_WAKEUP = 32  # then other connections have their turn
_PAUSE_S = 1.0


class Acceptor:
    """Unlike asyncio's servers, which accept until no descriptor is left, for the unix socket neither."""

    def __init__(
        self, listening: socket.socket, create_protocol: Callable[[], asyncio.Protocol], descriptor_limit: int
    ) -> None:
        self._listening, self._create_protocol = listening, create_protocol
        self._highest_descriptor = descriptor_limit - min(_RESERVED, descriptor_limit // 2)
        self._loop = asyncio.get_running_loop()
        self._resume_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        listening.setblocking(False)
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Stop listening. Connections that were accepted continue."""
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_WAKEUP):
            try:
                connection, _peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor is left
                self._pause(error.strerror or str(error))
                return
            if connection.fileno() > self._highest_descriptor:  # the kernel assigns the lowest free number
                connection.close()
                self._pause("the other descriptors are reserved for the unix socket and for files")
                return
            connection.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._create_protocol, connection)
        except OSError:  # the client is gone
            connection.close()

    def _pause(self, reason: str) -> None:
        log.warning("accepting no connections over TCP for %.0f s: %s", _PAUSE_S, reason)
        self._loop.remove_reader(self._listening)
        self._resume_timer = self._loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._listening, self._accept)
