"""The rooms of a yard put together, served, and closed when nobody is here."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from runyard import __version__, clock
from runyard.agent.notify import NotificationListener
from runyard.compute.local.compute import LocalCompute
from runyard.compute.local.forkserver_client import Nursery
from runyard.compute.registry import Around, Targets
from runyard.data.cache import Cache, trees_in_use
from runyard.data.datasets import Datasets
from runyard.data.registry import Datastores
from runyard.data.staging import Stager
from runyard.data.transfer_jobs import Transfers
from runyard.environments.manager import EnvironmentDepot
from runyard.environments.node_package import kit
from runyard.models.files import forget_uploads
from runyard.models.registry import Models
from runyard.orchestrator.change_notifier import Bell
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finalize import tidy_leftovers
from runyard.orchestrator.watch import Watcher
from runyard.posix import unix_socket
from runyard.server.app import create_app
from runyard.serving.manager import Services
from runyard.snapshots.store import Depot
from runyard.spec.data import RUN_FILES
from runyard.spec.folder import HomeFolder
from runyard.store.computes import ComputeStore
from runyard.store.datasets import DatasetStore
from runyard.store.on_listening import back_up, backup_is_due, open_database
from runyard.store.runs import RunStore
from runyard.store.sweeps import SweepStore
from runyard.sweeps.driver import SweepDriver
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.run_files import RunFiles
from runyard.wire.yard import ListenOptions
from runyard.yard.tcp_listener import Listening

log = logging.getLogger("runyard.yard")
_LOOK_FOR_BACKUP_EVERY_S = 600.0


class Yard:
    def __init__(self, home: Path, idle_s: float, listen: ListenOptions | None = None) -> None:
        """With a place to listen at it is a server, which stays when nobody is here."""
        self._idle_s = idle_s
        self._stays = listen is not None
        self._used_at = clock.monotonic()
        umask = os.umask(0o077)  # whatever is written here is the owner's alone
        files = HomeFolder(home)
        for folder in (files.runs, files.snapshots, files.environments, files.artifacts, files.node_package):
            folder.mkdir(exist_ok=True)
        database = open_database(files.database)
        compute = LocalCompute(home, Nursery(umask))
        node_kit = kit(files.node_package)
        self._listening = Listening(home)
        artifacts = Artifacts(database, files.artifacts)
        provider = Stager(Datastores(database, home), Cache(files.data / "cache", lambda: trees_in_use(home)))
        provider.stores.add_own(RUN_FILES, RunFiles(database, artifacts))
        self._rooms = Rooms(
            home=home,
            socket=files.socket,
            kit=node_kit,
            database=database,
            runs=RunStore(database),
            snapshots=Depot(files.snapshots),
            environments=EnvironmentDepot(files.environments),
            artifacts=artifacts,
            targets=Targets(
                ComputeStore(database), Around(home, node_kit, compute, self._hear, self._say, self._place)
            ),
            provider=provider,
            datasets=Datasets(DatasetStore(database), provider),
            address=self._listening.reach,
        )
        self._compute = compute
        self._conductor = Conductor(self._rooms)
        self._transfers = Transfers(database, provider.stores)
        self._watcher = Watcher(self._conductor)
        self._sweeps = SweepDriver(self._conductor, SweepStore(self._rooms.database))
        self._models = Models(self._rooms)
        self._services = Services(self._rooms, self._models)
        self._listening.prepare(listen)

    def serve(self, on_listening: Callable[[], None]) -> None:
        """Until nobody is here; `opened` is called when requests are answered."""
        rooms = self._rooms
        parts = (self._sweeps, self._models, self._transfers)
        app = create_app(self._conductor, self._used, self._listening, self._stays, *parts, web_services=self._services)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            http="httptools",
            ws="none",
            server_header=False,
            headers=[("server", f"runyard/{__version__}")],  # a client of another version can say so
            timeout_graceful_shutdown=1,
        )
        server = _Server(config, self._conductor.bell, self._listening)
        listening = unix_socket.bind(rooms.socket, socket.SOCK_STREAM)
        NotificationListener(HomeFolder(rooms.home).notify_socket, self._conductor.hear)
        rooms.environments.clean_leftovers()
        rooms.artifacts.clean_leftovers()
        forget_uploads(rooms)
        rooms.provider.cache.clean_leftovers()
        self._conductor.recover()
        self._transfers.recover()
        self._watcher.start()
        self._sweeps.start()
        self._services.start()
        self._compute.nursery.warm_up()
        threading.Thread(target=tidy_leftovers, args=(rooms,), name="tidy", daemon=True).start()
        on_listening()
        log.info("open: home %s, pid %d", rooms.home, os.getpid())
        try:
            asyncio.run(self._serve(server, listening))
        finally:
            for place in (rooms.socket, HomeFolder(rooms.home).notify_socket):
                place.unlink(missing_ok=True)
            self._watcher.stop()
            self._sweeps.stop()
            self._services.stop()
            self._conductor.close()
            self._transfers.close()
            rooms.targets.close()
            rooms.database.close()
            log.info("closed")
        # threads that wait for a build must not keep the process: the next yard takes their runs up again
        os._exit(0)

    def _hear(self, run_id: str) -> None:
        self._conductor.hear(run_id)

    def _say(self, run_id: str, text: str) -> None:
        self._conductor.say(run_id, text)

    def _place(self, target: str) -> None:
        self._conductor.place_waiting(self._rooms.targets.get(target))

    @property
    def _is_busy(self) -> bool:
        return self._conductor.busy or self._transfers.busy or self._services.are_there

    def _used(self) -> None:
        self._used_at = clock.monotonic()

    async def _serve(self, server: uvicorn.Server, listening: socket.socket) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
        chores = [asyncio.create_task(chore) for chore in (self._leave_when_idle(server), self._back_up_daily())]
        await server.serve(sockets=[listening])
        for chore in chores:
            chore.cancel()

    async def _back_up_daily(self) -> None:
        path = self._rooms.database.path
        while True:
            if backup_is_due(path) and self._rooms.runs.experiments():  # an empty yard is not worth a copy
                await asyncio.to_thread(back_up, path)
            await asyncio.sleep(_LOOK_FOR_BACKUP_EVERY_S)

    async def _leave_when_idle(self, server: uvicorn.Server) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._idle_s / 4))
            if self._stays or self._conductor.bell.listeners or self._is_busy:
                self._used()
            elif clock.monotonic() - self._used_at > self._idle_s:
                log.info("nobody was here for %s: closing", clock.duration_text(self._idle_s))
                server.should_exit = True
                return


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handlers: they end the process before the yard has closed.

    One that was asked to end does not wait for those who follow a run: they find the next yard.
    """

    def __init__(self, config: uvicorn.Config, bell: Bell, listening: Listening) -> None:
        super().__init__(config)
        self._bell, self._listening = bell, listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._listening.begin(self)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._bell.close()
        await super().shutdown(sockets)
