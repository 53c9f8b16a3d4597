"""The optional TCP listener of the yard, for a browser on this machine or for a team."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout  # before Python 3.11 not the built-in one
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from runyard.errors import UserErrorException
from runyard.server.auth import TokenAuth, load_token
from runyard.spec.folder import HomeFolder
from runyard.wire.yard import ListenOptions, StudioAddress

log = logging.getLogger("runyard.yard")
LOOPBACK = "127.0.0.1"
PORT = 8787
_PORTS_TO_TRY = 100
_TIMEOUT_S = 30.0
T = TypeVar("T")


class TcpListener:
    """Listens on one address at a time, and saves it in the home folder, so that the next yard uses the same."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._saved_address = HomeFolder(home).tcp_listener
        self._prepared: tuple[ListenOptions, socket.socket] | None = None  # bound before the server exists
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: asyncio.base_events.Server | None = None
        self._address: StudioAddress | None = None
        self._auth: TokenAuth | None = None
        self._started = threading.Event()

    @property
    def address(self) -> StudioAddress | None:
        return self._address

    def prepare(self, options: ListenOptions | None) -> None:
        """Bind before the yard serves. An address that was requested must be free; one that was saved may be in use."""
        saved = self._load_saved()
        if options is not None:
            self._prepared = options, _bind_free_port(options, saved)
        elif saved is not None:
            try:
                self._prepared = saved, _bind_free_port(saved, saved)
            except UserErrorException as error:
                log.warning("%s", error)

    async def start(self, server: uvicorn.Server) -> None:
        self._server, self._loop = server, asyncio.get_running_loop()
        if self._prepared is not None:
            await self._listen(*self._prepared)
        self._started.set()

    def open(self, options: ListenOptions) -> StudioAddress:
        """Listen on TCP; keep the current address unless another one is requested. Call it from a worker thread."""
        return self._run_in_loop(self._ensure_listening(options))

    def url_and_token(self) -> tuple[str, str] | None:
        """The yard's TCP address for scripts on this machine. The first call starts to listen.

        Returns:
            The URL and the token; None if the yard cannot listen, which must not make a run fail.
        """
        address = self._address
        if address is None:
            if not self._started.wait(_TIMEOUT_S):
                return None
            try:
                address = self.open(ListenOptions())
            except (
                UserErrorException,
                RuntimeError,
                FutureTimeout,
            ) as error:  # no port is free, or the yard is closing
                log.warning("scripts cannot connect to the yard over TCP: %s", error)
                return None
        return address.url.rstrip("/"), address.token

    def close(self) -> None:
        """Stop listening on TCP, also after a restart of the yard."""
        self._run_in_loop(self._close())

    async def _ensure_listening(self, options: ListenOptions) -> StudioAddress:
        current = self._address
        options = replace(options, host=options.host or (current.host if current is not None else LOOPBACK))
        if current is None or options.host != current.host or options.port not in (0, current.port) or options.names:
            current = await self._listen(options, _bind_free_port(options, self._load_saved()))
        assert self._auth is not None
        return replace(current, ticket=self._auth.create_ticket())

    async def _close(self) -> None:
        self._saved_address.unlink(missing_ok=True)
        self._stop()

    async def _listen(self, options: ListenOptions, listening_socket: socket.socket) -> StudioAddress:
        server, loop = self._server, self._loop
        assert server is not None
        assert loop is not None
        port, token = listening_socket.getsockname()[1], load_token(self._home)
        app: Any = server.config.app
        self._auth = TokenAuth(app, token, port, (options.host, *options.names))
        config = uvicorn_config(self._auth, proxy_headers=False, interface="asgi3")
        config.load()
        protocol: Any = config.http_protocol_class
        self._stop()
        # shares the state of the unix socket's server: these connections are closed on shutdown, too
        self._listener = await loop.create_server(
            lambda: protocol(config=config, server_state=server.server_state, app_state={}), sock=listening_socket
        )
        server.servers.append(self._listener)
        self._address = StudioAddress(options.host, port, _url(options.host, port), token)
        self._saved_address.write_text(json.dumps(asdict(replace(options, port=port))), encoding="utf-8")
        log.info("listening on %s", self._address.url)
        return self._address

    def _stop(self) -> None:
        if self._listener is not None and self._server is not None:
            self._listener.close()
            self._server.servers.remove(self._listener)
        self._listener = self._address = None

    def _load_saved(self) -> ListenOptions | None:
        try:
            saved = json.loads(self._saved_address.read_text(encoding="utf-8"))
            return ListenOptions(str(saved["host"]), int(saved["port"]), list(map(str, saved["names"])))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _run_in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)


def uvicorn_config(app: Any, **settings: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", http="httptools", ws="none", **settings
    )


def _bind_free_port(options: ListenOptions, saved: ListenOptions | None) -> socket.socket:
    """Bind the requested port; without one, the saved port or the next free one."""
    if options.port:
        try:
            return _bind(options.host, options.port)
        except OSError as error:
            raise UserErrorException(
                f"the yard cannot listen on {options.host}:{options.port}: {error.strerror or error}",
                hint="choose another port with --port, or omit it to use the next free one",
            ) from error
    first = saved.port if saved is not None and saved.port else PORT
    for port in (first, *range(PORT, PORT + _PORTS_TO_TRY), 0):
        with suppress(OSError):
            return _bind(options.host, port)
    raise UserErrorException(
        f"the yard cannot listen on {options.host}", hint="use an address of this machine, such as 127.0.0.1"
    )


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle only on sockets with an explicit protocol; otherwise small responses take 40 ms longer
    listening_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind((host, port))
        listening_socket.listen(128)
    except OSError:
        listening_socket.close()
        raise
    return listening_socket


def _url(host: str, port: int) -> str:
    name = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"
