"""Creates the yard's components, serves requests, and shuts down when idle."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from runyard import __version__, clock
from runyard.agent.notify import NotificationListener
from runyard.compute.kind import TargetDeps
from runyard.compute.local.compute import LocalCompute
from runyard.compute.local.forkserver_client import ForkserverClient
from runyard.compute.registry import Targets
from runyard.data.cache import Cache, trees_in_use
from runyard.data.datasets import Datasets
from runyard.data.registry import Datastores
from runyard.data.staging import Stager
from runyard.data.transfer_jobs import Transfers
from runyard.environments.manager import EnvironmentManager
from runyard.environments.node_package import create_node_package
from runyard.errors import RunyardException
from runyard.models.files import delete_stale_uploads
from runyard.models.registry import Models
from runyard.orchestrator.change_notifier import ChangeNotifier
from runyard.orchestrator.components import Components
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finalize import clean_up_leftovers
from runyard.orchestrator.watch import Watcher
from runyard.posix import descriptor_limit, unix_socket
from runyard.secrets.vault import Vault, redact_logs
from runyard.server.app import create_app
from runyard.server.security_headers import SecurityHeaders
from runyard.serving.manager import ServiceManager
from runyard.snapshots.store import SnapshotStore
from runyard.spec.data import RUN_FILES_STORE
from runyard.spec.folder import HomeFolder
from runyard.store.backups import Backup, back_up, backup_is_due
from runyard.store.computes import ComputeStore
from runyard.store.datasets import DatasetStore
from runyard.store.experiments import ExperimentStore
from runyard.store.open_store import open_database
from runyard.store.runs import RunStore
from runyard.store.sweeps import SweepStore
from runyard.sweeps.driver import SweepDriver
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.run_files import RunFiles
from runyard.wire.yard import ListenOptions
from runyard.yard.home_lock import HomeLock
from runyard.yard.tcp_listener import TcpListener, uvicorn_config

log = logging.getLogger("runyard.yard")
_BACKUP_CHECK_INTERVAL_S = 600.0
_LISTENING_CHECK_INTERVAL_S = 1.0
_DATABASE_CHECK_INTERVAL_S = 1.0
_SHUTDOWN_S = 1.0


class Yard:
    def __init__(self, home: Path, lock: HomeLock, idle_s: float, listen: ListenOptions | None = None) -> None:
        """With a TCP address to listen on, the yard is a server and does not exit after ``idle_s``."""
        self._lock = lock
        self._idle_s = idle_s
        self._stays = listen is not None
        self._last_activity = clock.monotonic()
        umask = os.umask(0o077)  # everything that the yard writes is private to the owner
        files = HomeFolder(home)
        for folder in (files.runs, files.snapshots, files.environments, files.artifacts, files.node_package):
            folder.mkdir(exist_ok=True)
        database = open_database(files.database)
        compute = LocalCompute(home, ForkserverClient(umask))
        node_package = create_node_package(files.node_package)
        self._tcp_listener = TcpListener(home, descriptor_limit.raise_limit())
        artifacts = Artifacts(database, files.artifacts)
        stager = Stager(Datastores(database, home), Cache(files.data / "cache", lambda: trees_in_use(home)))
        stager.stores.add_builtin(RUN_FILES_STORE, RunFiles(database, artifacts))
        self._components = Components(
            home=home,
            socket=files.socket,
            node_package=node_package,
            database=database,
            runs=RunStore(database),
            snapshots=SnapshotStore(files.snapshots),
            environments=EnvironmentManager(files.environments),
            artifacts=artifacts,
            targets=Targets(
                ComputeStore(database),
                TargetDeps(home, node_package, compute, self._on_run_changed, self._report, self._place_waiting),
            ),
            stager=stager,
            datasets=Datasets(DatasetStore(database), stager),
            vault=Vault(home),
            address=self._tcp_listener.address_for_run,
        )
        self._compute = compute
        self._conductor = Conductor(self._components)
        self._transfers = Transfers(database, stager.stores)
        self._watcher = Watcher(self._conductor)
        self._sweeps = SweepDriver(self._conductor, SweepStore(self._components.database))
        self._models = Models(self._components)
        self._services = ServiceManager(self._components, self._models)
        self._tcp_listener.prepare(listen)

    def serve(self, on_listening: Callable[[], None]) -> None:
        """Serve until the yard is idle or terminated; calls `on_listening` when it accepts requests."""
        components = self._components
        redact_logs(components.vault)
        app = create_app(
            self._conductor,
            self._tcp_listener,
            self._sweeps,
            self._models,
            self._transfers,
            self._services,
            on_request=self._record_activity,
            stays=self._stays,
        )
        config = uvicorn_config(
            SecurityHeaders(app),
            server_header=False,
            headers=[("server", f"runyard/{__version__}")],  # lets a client detect a different version
        )
        server = _Server(config, self._conductor.notifier, self._tcp_listener, app)
        listening = unix_socket.bind(components.socket, socket.SOCK_STREAM)
        notify_socket = HomeFolder(components.home).notify_socket
        notifications = NotificationListener(notify_socket, self._conductor.run_changed)
        components.environments.clean_leftovers()
        components.artifacts.clean_leftovers()
        delete_stale_uploads(components)
        components.stager.cache.clean_leftovers()
        self._conductor.recover()
        self._transfers.recover()
        self._watcher.start()
        self._sweeps.start()
        self._services.start()
        self._models.webhooks.start()
        self._compute.forkserver.warm_up()
        threading.Thread(target=clean_up_leftovers, args=(components,), name="tidy", daemon=True).start()
        on_listening()
        log.info("open: home %s, pid %d", components.home, os.getpid())
        try:
            asyncio.run(self._serve(server, listening))
        finally:
            notifications.close()
            if self._lock.is_valid:  # otherwise they belong to another yard
                for path in (components.socket, notify_socket):
                    path.unlink(missing_ok=True)
            self._watcher.stop()
            self._sweeps.stop()
            self._services.stop()
            self._models.webhooks.stop()
            self._conductor.close()
            self._transfers.close()
            components.targets.close()
            components.database.close()
            log.info("closed")
        # threads that wait for a build must not keep the process alive: the next yard resumes their runs
        os._exit(0)

    def _on_run_changed(self, run_id: str) -> None:
        self._conductor.run_changed(run_id)

    def _report(self, run_id: str, text: str) -> None:
        self._conductor.report(run_id, text)

    def _place_waiting(self, target: str) -> None:
        self._conductor.place_waiting(self._components.targets.get(target))

    @property
    def _is_busy(self) -> bool:
        return self._conductor.busy or self._transfers.busy or self._services.busy or self._models.webhooks.busy

    def _record_activity(self) -> None:
        self._last_activity = clock.monotonic()

    async def _serve(self, server: _Server, listening: socket.socket) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
        background = (
            self._exit_when_idle(server),
            self._back_up_daily(),
            self._keep_listening(server),
            self._close_without_database(server),
        )
        tasks = [asyncio.create_task(work) for work in background]
        await server.serve(sockets=[listening])
        for task in tasks:
            task.cancel()

    async def _close_without_database(self, server: uvicorn.Server) -> None:
        """If the database file was removed, save its content, which is still open, and close.

        A yard that continued would lose everything that it stores from then on.
        """
        database = self._components.database
        while not database.is_lost():
            await asyncio.sleep(_DATABASE_CHECK_INTERVAL_S)
        try:
            backup = await asyncio.to_thread(self._save_open_database)
            log.error("%s was removed or replaced: its content was saved to %s", database.path, backup.path)
        except (RunyardException, OSError, sqlite3.Error, SQLAlchemyError) as error:
            log.error("%s was removed or replaced, and its content could not be saved: %s", database.path, error)
        server.should_exit = True

    def _save_open_database(self) -> Backup:
        with self._components.database.read() as connection:
            source: Any = connection.connection.dbapi_connection
            return back_up(self._components.database.path, source)

    async def _back_up_daily(self) -> None:
        path = self._components.database.path
        while True:
            try:
                is_empty = not ExperimentStore(self._components.database).all()
                if backup_is_due(path) and not is_empty:
                    await asyncio.to_thread(back_up, path)
            except (RunyardException, OSError, sqlite3.Error) as error:  # such as a full disk; tried again
                log.error("%s", error)
            await asyncio.sleep(_BACKUP_CHECK_INTERVAL_S)

    async def _keep_listening(self, server: _Server) -> None:
        """Restore the unix socket if its file was removed; close the TCP port after the runs that needed it."""
        while True:
            await asyncio.sleep(_LISTENING_CHECK_INTERVAL_S)
            if server.should_exit:  # it closes its sockets itself, and must not accept clients anymore
                return
            try:
                await self._tcp_listener.close_after_runs(self._active_runs)
                if unix_socket.is_open(self._components.socket):
                    continue
                if not self._lock.renew():
                    log.error("another yard has taken over %s: closing", self._components.home)
                    server.should_exit = True
                    return
                await server.restore(self._components.socket)
                log.warning("%s was removed: listening on it again", self._components.socket)
            except OSError as error:  # the home folder is gone or its disk is full; tried again
                log.warning("cannot restore %s: %s", self._components.socket, error)

    def _active_runs(self, run_ids: Collection[str]) -> set[str]:
        records = self._components.runs.find(run_ids=list(run_ids), limit=len(run_ids))
        return {record.run_id for record in records if not record.life.state.is_terminal}

    async def _exit_when_idle(self, server: uvicorn.Server) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._idle_s / 4))
            if self._stays or self._conductor.notifier.subscriber_count or self._is_busy:
                self._record_activity()
            elif clock.monotonic() - self._last_activity > self._idle_s:
                log.info("idle for %s: closing", clock.duration_text(self._idle_s))
                server.should_exit = True
                return


class _Server(uvicorn.Server):
    """Disables uvicorn's signal handlers, which end the process before the yard has closed.

    On shutdown it does not wait for clients that follow a run: they reconnect to the next yard.
    """

    def __init__(
        self, config: uvicorn.Config, notifier: ChangeNotifier, tcp_listener: TcpListener, app: FastAPI
    ) -> None:
        super().__init__(config)
        self._notifier, self._tcp_listener, self._app = notifier, tcp_listener, app

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._tcp_listener.start(self, self._app)

    async def restore(self, path: Path) -> None:
        """Listen on a new unix socket instead of the first one, which clients cannot find anymore."""
        protocol: Any = self.config.http_protocol_class
        listening = unix_socket.bind(path, socket.SOCK_STREAM)
        new_server = await asyncio.get_running_loop().create_server(
            lambda: protocol(config=self.config, server_state=self.server_state, app_state={}), sock=listening
        )
        for server in self.servers:
            server.close()
        self.servers = [new_server]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections; those with a request in progress after a second."""
        self._notifier.close()
        self._tcp_listener.stop()
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        state = self.server_state
        await self._close_connections(lambda connection: connection.shutdown())
        if state.connections or state.tasks:
            log.info("connections closed during a request: %d", len(state.connections))
            await self._close_connections(lambda connection: connection.transport.abort())

    async def _close_connections(self, close: Callable[[Any], object]) -> None:
        deadline = clock.monotonic() + _SHUTDOWN_S
        while (self.server_state.connections or self.server_state.tasks) and clock.monotonic() < deadline:
            # every time again: a connection that was accepted in the last moment appears later
            for connection in list(self.server_state.connections):
                close(connection)
            await asyncio.sleep(0.02)
