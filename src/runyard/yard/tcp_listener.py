"""Listening on TCP when somebody wants to: for a browser on this machine, or for a team."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as Late  # before Python 3.11 not the usual one
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from runyard.errors import UserErrorException
from runyard.server.auth import Door, token_of
from runyard.spec.folder import HomeFolder
from runyard.wire.yard import ListenOptions, StudioAddress

log = logging.getLogger("runyard.yard")
LOOPBACK = "127.0.0.1"
PORT = 8787
_TRIES = 100
_PATIENCE_S = 30.0
T = TypeVar("T")


class Listening:
    """One address at a time, kept in the home folder, so that the next yard is at the same place."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._kept = HomeFolder(home).tcp_listener
        self._bound: tuple[ListenOptions, socket.socket] | None = None  # before there is a server
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: asyncio.base_events.Server | None = None
        self._address: StudioAddress | None = None
        self._door: Door | None = None
        self._begun = threading.Event()

    @property
    def address(self) -> StudioAddress | None:
        return self._address

    def prepare(self, asked: ListenOptions | None) -> None:
        """Before the yard opens: what it was asked for must be possible; where the last one listened may be taken."""
        kept = self._remembered()
        if asked is not None:
            self._bound = asked, _bound(asked, kept)
        elif kept is not None:
            try:
                self._bound = kept, _bound(kept, kept)
            except UserErrorException as error:
                log.warning("%s", error)

    async def begin(self, server: uvicorn.Server) -> None:
        self._server, self._loop = server, asyncio.get_running_loop()
        if self._bound is not None:
            await self._listen(*self._bound)
        self._begun.set()

    def open(self, wanted: ListenOptions) -> StudioAddress:
        """From a thread of a request. Where it listens already, it stays, unless another place is asked for."""
        return self._in_loop(self._opened(wanted))

    def reach(self) -> tuple[str, str] | None:
        """For scripts on this machine: where the yard is, and its token. It listens from the first call on.

        None when that cannot be: a run does not fail because of it.
        """
        address = self._address
        if address is None:
            if not self._begun.wait(_PATIENCE_S):
                return None
            try:
                address = self.open(ListenOptions())
            except (UserErrorException, RuntimeError, Late) as error:  # no port is free, or the yard is closing
                log.warning("scripts cannot reach the yard by TCP: %s", error)
                return None
        return address.url.rstrip("/"), address.token

    def close(self) -> None:
        """Nobody comes in from the network any more, nor at the next yard."""
        self._in_loop(self._closed())

    async def _opened(self, wanted: ListenOptions) -> StudioAddress:
        now = self._address
        wanted = replace(wanted, host=wanted.host or (now.host if now is not None else LOOPBACK))
        if now is None or wanted.host != now.host or wanted.port not in (0, now.port) or wanted.names:
            now = await self._listen(wanted, _bound(wanted, self._remembered()))
        assert self._door is not None
        return replace(now, ticket=self._door.ticket())

    async def _closed(self) -> None:
        self._kept.unlink(missing_ok=True)
        self._stop()

    async def _listen(self, wanted: ListenOptions, bound: socket.socket) -> StudioAddress:
        server, loop = self._server, self._loop
        assert server is not None
        assert loop is not None
        port, token = bound.getsockname()[1], token_of(self._home)
        app: Any = server.config.app
        self._door = Door(app, token, port, (wanted.host, *wanted.names))
        config = uvicorn.Config(
            self._door,
            log_level="warning",
            access_log=False,
            lifespan="off",
            http="httptools",
            ws="none",
            proxy_headers=False,
            interface="asgi3",
        )
        config.load()
        make: Any = config.http_protocol_class
        self._stop()
        # of the same state as the socket's: whoever is connected here is told when the yard goes away, too
        self._open = await loop.create_server(
            lambda: make(config=config, server_state=server.server_state, app_state={}), sock=bound
        )
        server.servers.append(self._open)
        self._address = StudioAddress(wanted.host, port, _url(wanted.host, port), token)
        self._kept.write_text(json.dumps(asdict(ListenOptions(wanted.host, port, wanted.names))), encoding="utf-8")
        log.info("listening on %s", self._address.url)
        return self._address

    def _stop(self) -> None:
        if self._open is not None and self._server is not None:
            self._open.close()
            self._server.servers.remove(self._open)
        self._open = self._address = None

    def _remembered(self) -> ListenOptions | None:
        try:
            said = json.loads(self._kept.read_text(encoding="utf-8"))
            return ListenOptions(str(said["host"]), int(said["port"]), list(map(str, said["names"])))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)


def _bound(wanted: ListenOptions, kept: ListenOptions | None) -> socket.socket:
    """A port that was named must be free; without one, the one of last time, or the next that is."""
    if wanted.port:
        try:
            return _bind(wanted.host, wanted.port)
        except OSError as error:
            raise UserErrorException(
                f"the yard cannot listen on {wanted.host}:{wanted.port}: {error.strerror or error}",
                hint="name another one with --port, or none and the next free one is taken",
            ) from error
    first = kept.port if kept is not None and kept.port else PORT
    for port in (first, *range(PORT, PORT + _TRIES), 0):
        with suppress(OSError):
            return _bind(wanted.host, port)
    raise UserErrorException(
        f"the yard cannot listen on {wanted.host}", hint="name an address of this machine, such as 127.0.0.1"
    )


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say what they are; others wait 40 ms for the other side
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(128)
    except OSError:
        bound.close()
        raise
    return bound


def _url(host: str, port: int) -> str:
    reached = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{reached}:{port}/"
