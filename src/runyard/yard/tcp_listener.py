"""The optional TCP listener of the yard: for a browser on this machine, for a team, or for runs that use MLflow."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout  # before Python 3.11 not the built-in one
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from runyard.errors import UserErrorException
from runyard.posix.atomic_write import write_text
from runyard.server.auth import TokenAuth, load_token, run_token
from runyard.server.mlflow.ui.paths import MlflowPaths
from runyard.server.security_headers import SecurityHeaders
from runyard.spec.folder import HomeFolder
from runyard.wire.yard import ListenOptions, StudioAddress
from runyard.yard.acceptor import Acceptor
from runyard.yard.connection_limits import protocol_factory

log = logging.getLogger("runyard.yard")
LOOPBACK = "127.0.0.1"
PORT = 8787
_PORTS_TO_TRY = 100
_TIMEOUT_S = 30.0
T = TypeVar("T")


@dataclass(frozen=True)
class _Saved:
    """An address in the home folder, so that the next yard uses the same."""

    options: ListenOptions
    is_requested: bool = True  # by a user; otherwise it is open only while one of the runs is active
    run_ids: frozenset[str] = field(default_factory=frozenset)


class TcpListener:
    """Listens on one address at a time: on request until it is closed, for runs until the last of them has ended."""

    def __init__(self, home: Path, descriptor_limit: int = 1024) -> None:
        self._home = home
        self._descriptor_limit = descriptor_limit
        self._saved_address = HomeFolder(home).tcp_listener
        self._prepared: tuple[ListenOptions, socket.socket] | None = None  # bound before the server exists
        self._server: uvicorn.Server | None = None
        self._app: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._acceptor: Acceptor | None = None
        self._address: StudioAddress | None = None
        self._options = ListenOptions()
        self._is_requested = False
        self._run_ids: frozenset[str] = frozenset()
        self._auth: TokenAuth | None = None
        self._started = threading.Event()

    @property
    def address(self) -> StudioAddress | None:
        return self._address

    def prepare(self, options: ListenOptions | None) -> None:
        """Bind before the yard serves. An address that was requested must be free; one that was saved may be in use."""
        saved = self._load_saved()
        if saved is not None:
            self._is_requested, self._run_ids = saved.is_requested, saved.run_ids
        if options is not None:
            self._is_requested = True
            self._prepared = options, _bind_free_port(options, saved)
        elif saved is not None:
            try:
                self._prepared = saved.options, _bind_free_port(saved.options, saved)
            except UserErrorException as error:
                log.warning("%s", error)

    async def start(self, server: uvicorn.Server, app: Any) -> None:
        self._server, self._app, self._loop = server, app, asyncio.get_running_loop()
        if self._prepared is not None:
            await self._listen(*self._prepared)
        self._started.set()

    def open(self, options: ListenOptions) -> StudioAddress:
        """Listen on TCP; keep the current address unless another one is requested. Call it from a worker thread."""
        return self._run_in_loop(self._open_on_request(options))

    def address_for_run(self, run_id: str, is_needed: bool) -> tuple[str, str] | None:
        """The yard's TCP address for a script on this machine.

        Args:
            run_id: The run.
            is_needed: Listen until this run has ended; otherwise the address is returned only if a user requested it.

        Returns:
            The URL and the run's token; None if the yard does not listen. A yard that cannot must not make a run fail.
        """
        if not (is_needed or self._is_requested) or not self._started.wait(_TIMEOUT_S):
            return None
        address = self._address if self._is_requested else None
        if address is None:
            if not is_needed:
                return None
            try:
                address = self._run_in_loop(self._open_for_run(run_id))
            except (
                UserErrorException,
                RuntimeError,
                FutureTimeout,
                OSError,
            ) as error:  # no port is free, the disk is full, or the yard is closing
                log.warning("scripts cannot connect to the yard over TCP: %s", error)
                return None
        return address.url.rstrip("/"), run_token(address.token, run_id)

    def close(self) -> None:
        """Stop listening on TCP, also after a restart of the yard."""
        self._run_in_loop(self._close())

    async def close_after_runs(self, active: Callable[[Collection[str]], set[str]]) -> None:
        """Stop listening if the address was opened for runs and none of them is active."""
        if not self._run_ids:
            return
        run_ids = self._run_ids
        ended_ids = run_ids - await asyncio.to_thread(active, run_ids)
        if not ended_ids:
            return
        self._run_ids -= ended_ids
        if self._run_ids or self._is_requested:
            self._save()
        else:
            log.info("no longer listening on TCP: the runs that needed it have ended")
            await self._close()

    def stop(self) -> None:
        """Stop listening; the next yard continues."""
        if self._acceptor is not None:
            self._acceptor.close()
        self._acceptor = self._address = None

    async def _open_on_request(self, options: ListenOptions) -> StudioAddress:
        current = await self._ensure_listening(options)
        self._is_requested = True
        self._save()
        assert self._auth is not None
        return replace(current, ticket=self._auth.create_ticket())

    async def _open_for_run(self, run_id: str) -> StudioAddress:
        address = await self._ensure_listening(ListenOptions())
        self._run_ids |= {run_id}
        self._save()
        return address

    async def _ensure_listening(self, options: ListenOptions) -> StudioAddress:
        current = self._address
        options = replace(options, host=options.host or (current.host if current is not None else LOOPBACK))
        if current is None or options.host != current.host or options.port not in (0, current.port) or options.names:
            current = await self._listen(options, _bind_free_port(options, self._load_saved()))
        return current

    async def _close(self) -> None:
        self._saved_address.unlink(missing_ok=True)
        self._is_requested, self._run_ids = False, frozenset()
        self.stop()

    async def _listen(self, options: ListenOptions, listening_socket: socket.socket) -> StudioAddress:
        assert self._server is not None
        port, token = listening_socket.getsockname()[1], load_token(self._home)
        self._auth = TokenAuth(self._app, token, port, (options.host, *options.names))
        config = uvicorn_config(SecurityHeaders(MlflowPaths(self._auth)), proxy_headers=False, interface="asgi3")
        config.load()
        self.stop()
        # shares the state of the unix socket's server: these connections are closed on shutdown, too
        create_protocol = protocol_factory(config, self._server.server_state)
        self._acceptor = Acceptor(listening_socket, create_protocol, self._descriptor_limit)
        self._options = replace(options, port=port)
        self._address = StudioAddress(options.host, port, _url(options.host, port), token)
        self._save()
        log.info("listening on %s", self._address.url)
        return self._address

    def _save(self) -> None:
        content = {**asdict(self._options), "requested": self._is_requested, "runs": sorted(self._run_ids)}
        write_text(self._saved_address, json.dumps(content))

    def _load_saved(self) -> _Saved | None:
        try:
            saved = json.loads(self._saved_address.read_text(encoding="utf-8"))
            options = ListenOptions(str(saved["host"]), int(saved["port"]), list(map(str, saved["names"])))
            return _Saved(options, bool(saved.get("requested", True)), frozenset(map(str, saved.get("runs", ()))))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _run_in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)


def uvicorn_config(app: Any, **settings: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        log_config=None,  # through the yard's handler, which limits repeated lines
        access_log=False,
        lifespan="off",
        http="httptools",
        ws="none",
        **settings,
    )


def _bind_free_port(options: ListenOptions, saved: _Saved | None) -> socket.socket:
    """Bind the requested port; without one, the saved port or the next free one."""
    if options.port:
        try:
            return _bind(options.host, options.port)
        except OSError as error:
            raise UserErrorException(
                f"the yard cannot listen on {options.host}:{options.port}: {error.strerror or error}",
                hint="choose another port with --port, or omit it to use the next free one",
            ) from error
    first = saved.options.port if saved is not None and saved.options.port else PORT
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
