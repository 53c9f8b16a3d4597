"""The HTTP API as one application: on a unix socket for a laptop, on TCP for a team."""

from __future__ import annotations

import os
from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from runyard import __version__
from runyard.orchestrator.conductor import Conductor
from runyard.server import problems
from runyard.server.answers import answer
from runyard.server.routes import computes, environments, files, follow, metrics, runs, snapshots
from runyard.wire.yard import Health


def create_app(conductor: Conductor, on_request: Callable[[], None] = lambda: None) -> FastAPI:
    app = FastAPI(title="Runyard", version=__version__, docs_url="/api/docs", openapi_url="/api/openapi.json")
    problems.install(app, conductor.rooms.database.path)
    for room in (runs, follow, metrics, files, snapshots, environments, computes):
        app.include_router(room.routes(conductor), prefix="/api")

    @app.get("/api/health", response_model=Health)
    async def health() -> Response:
        rooms = conductor.rooms
        return answer(Health(__version__, os.getpid(), str(rooms.home), len(conductor.live), str(rooms.kit)))

    app.add_middleware(_Notice, on_request=on_request)
    return app


class _Notice:
    """Tells the yard that somebody is here, so that it does not go away."""

    def __init__(self, app: Callable[..., object], on_request: Callable[[], None]) -> None:
        self._app, self._on_request = app, on_request

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        self._on_request()
        await self._app(scope, receive, send)  # type: ignore[misc]  # ASGI has no types of its own


__all__ = ["Request", "create_app"]
