"""The HTTP API as one application: on a unix socket for a laptop, on TCP for a team."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import FastAPI, Response
from starlette.convertors import Convertor, register_url_convertor

from runyard import __version__
from runyard.data.transfer_jobs import Transfers
from runyard.errors import UserErrorException
from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.run_table.table import RunTable
from runyard.server import error_handlers, openapi, studio_files
from runyard.server.mlflow.routes import routes as mlflow_routes
from runyard.server.network import Network
from runyard.server.responses import answer
from runyard.server.routes import (
    charts,
    computes,
    data,
    datasets,
    environments,
    exchange,
    experiments,
    files,
    follow,
    images,
    live,
    logs,
    metrics,
    models,
    network,
    run_inspection,
    run_table,
    runs,
    services,
    snapshots,
    sweeps,
)
from runyard.serving.images import Images
from runyard.serving.manager import Services
from runyard.sweeps.driver import SweepDriver
from runyard.wire.yard import Health

_LARGEST_BODY = 256 * 1024 * 1024  # a description; the largest are the manifests of folders with a million files
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class _Any(Convertor[str]):
    """The rest of a path, whatever it is: `path` stops at a newline, which names of files and metrics may have."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _Any())


def create_app(
    conductor: Conductor,
    on_request: Callable[[], None] = lambda: None,
    net: Network | None = None,
    stays: bool = False,
    sweep_driver: SweepDriver | None = None,
    registry: Models | None = None,
    transfers: Transfers | None = None,
    web_services: Services | None = None,
) -> FastAPI:
    app = FastAPI(title="Runyard", version=__version__, docs_url="/api/docs", openapi_url="/api/openapi.json")
    error_handlers.install(app, conductor.rooms.database.path)
    table = RunTable(conductor.rooms.database, conductor.doing)
    app.include_router(run_table.routes(table), prefix="/api")  # before the runs: `table` is no run's id
    app.include_router(live.routes(conductor, table), prefix="/api")
    app.include_router(exchange.routes(conductor), prefix="/api")  # `import` is no run's id either
    for room in (
        runs,
        experiments,
        follow,
        run_inspection,
        charts,
        metrics,
        logs,
        files,
        snapshots,
        environments,
        computes,
    ):
        app.include_router(room.routes(conductor), prefix="/api")
    app.include_router(datasets.routes(conductor), prefix="/api")
    app.include_router(data.routes(conductor, transfers), prefix="/api")
    app.include_router(sweeps.routes(conductor, sweep_driver), prefix="/api")
    app.include_router(models.routes(conductor, registry or Models(conductor.rooms)), prefix="/api")
    app.include_router(mlflow_routes(conductor), prefix="/api")
    if web_services is not None and registry is not None:
        app.include_router(services.routes(web_services), prefix="/api")
        app.include_router(images.routes(Images(conductor.rooms, registry)), prefix="/api")
    if net is not None:
        app.include_router(network.routes(net, table.page), prefix="/api")

    @app.get("/api/health", response_model=Health)
    async def health() -> Response:
        rooms = conductor.rooms
        address = net.address if net is not None else None
        url = address.url if address is not None else ""
        live_runs = len(conductor.live)
        return answer(Health(__version__, os.getpid(), str(rooms.home), live_runs, str(rooms.kit), url, stays))

    openapi.install(app)
    studio_files.install(app)
    app.add_middleware(_Door, on_request=on_request)
    return app


class _Door:
    """Tells the yard that somebody is here, so that it does not go away; and lets nobody fill its memory."""

    def __init__(self, app: Callable[..., Awaitable[None]], on_request: Callable[[], None]) -> None:
        self._app, self._on_request = app, on_request

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        self._on_request()
        if scope["type"] != "http" or scope["method"] == "PUT":  # the body of a PUT is a file, and goes to disk
            await self._app(scope, receive, send)
            return
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if lengths and int(lengths[0]) > _LARGEST_BODY:
            said = f"a body of {int(lengths[0]) / 1e9:.1f} GB is more than this yard reads"
            await error_handlers.problem(413, "UserErrorException", said, "send files with PUT")(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), send)


def _bounded(receive: _Receive) -> _Receive:
    left = _LARGEST_BODY

    async def count() -> _Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise UserErrorException("the body is more than this yard reads", hint="send files with PUT")
        return message

    return count
