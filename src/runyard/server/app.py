"""The HTTP API as one application, served on a unix socket and optionally on TCP."""

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
from runyard.server.mlflow import probes as mlflow_probes
from runyard.server.mlflow.routes import routes as mlflow_routes
from runyard.server.mlflow.ui import page as mlflow_page
from runyard.server.network import Network
from runyard.server.responses import json_response
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
    secrets,
    services,
    snapshots,
    sweeps,
)
from runyard.serving.images import Images
from runyard.serving.manager import ServiceManager
from runyard.sweeps.driver import SweepDriver
from runyard.wire.yard import Health

_MAX_BODY_BYTES = 256 * 1024 * 1024  # of JSON; the largest are the manifests of folders with a million files
# FastAPI's pages for the API load scripts from another server into the origin of the studio
_NO_PAGES: dict[str, Any] = {"docs_url": None, "redoc_url": None}
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class _AnyText(Convertor[str]):
    """The rest of a path. Unlike `path` it includes newlines, which names of files and metrics may contain."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _AnyText())


def create_app(
    conductor: Conductor,
    listener: Network,
    driver: SweepDriver,
    registry: Models,
    transfers: Transfers,
    service_manager: ServiceManager,
    *,
    on_request: Callable[[], None] = lambda: None,
    stays: bool = False,
) -> FastAPI:
    """Build the application of a yard.

    Args:
        on_request: Called for every request.
        stays: The yard does not exit when it is idle; only reported in `/api/health`.
    """
    app = FastAPI(title="Runyard", version=__version__, openapi_url="/api/openapi.json", **_NO_PAGES)
    components = conductor.components
    error_handlers.install(app, components.database.path)
    table = RunTable(components.database, conductor.activity_text)
    of_runs = (runs, experiments, follow, run_inspection, charts, metrics, logs, files, snapshots)
    by_conductor = (*of_runs, environments, secrets, computes, datasets)
    for router in (
        run_table.routes(table),  # before the runs: `table` is not a run id
        live.routes(conductor, table),
        exchange.routes(conductor),  # nor is `import`
        *(module.routes(conductor) for module in by_conductor),
        data.routes(conductor, transfers),
        sweeps.routes(conductor, driver),
        models.routes(conductor, registry),
        mlflow_routes(conductor, registry),
        services.routes(service_manager),
        images.routes(Images(components, registry)),
        network.routes(listener, table.page),
    ):
        app.include_router(router, prefix="/api")

    @app.get("/api/health", response_model=Health)
    async def health() -> Response:
        url = listener.address.url if listener.address is not None else ""
        home, package = str(components.home), str(components.node_package)
        return json_response(Health(__version__, os.getpid(), home, len(conductor.live), package, url, stays))

    openapi.install(app)
    mlflow_probes.install(app)
    mlflow_page.install(app, components.home)
    studio_files.install(app)
    app.add_middleware(_RequestGate, on_request=on_request)
    return app


class _RequestGate:
    """Reports activity, so that the yard does not exit as idle, and limits the size of request bodies."""

    def __init__(self, app: Callable[..., Awaitable[None]], on_request: Callable[[], None]) -> None:
        self._app, self._on_request = app, on_request

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        self._on_request()
        if scope["type"] != "http" or scope["method"] == "PUT":  # the body of a PUT is a file, which is written to disk
            await self._app(scope, receive, send)
            return
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if lengths and int(lengths[0]) > _MAX_BODY_BYTES:
            text = f"request body of {int(lengths[0]) / 1e9:.1f} GB is too large"
            refusal = error_handlers.error_response(413, "UserErrorException", text, "send files with PUT")
            await refusal(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), send)


def _bounded(receive: _Receive) -> _Receive:
    remaining = _MAX_BODY_BYTES

    async def receive_bounded() -> _Message:
        nonlocal remaining
        message = await receive()
        remaining -= len(message.get("body", b""))
        if remaining < 0:
            raise UserErrorException("request body is too large", hint="send files with PUT")
        return message

    return receive_bounded
