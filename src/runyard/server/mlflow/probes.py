"""`/health` and `/version` of MLflow's server, which clients and monitoring programs request without a token."""

from __future__ import annotations

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

# The newest MLflow whose client the tests run: clients compare it with the versions that introduced an endpoint.
MLFLOW_VERSION = "3.17.2"


def install(app: FastAPI) -> None:
    """Call it before the studio's routes, which match every path."""

    @app.get("/health", include_in_schema=False)
    def health() -> Response:
        return PlainTextResponse("OK")

    @app.get("/version", include_in_schema=False)
    def version() -> Response:
        return PlainTextResponse(MLFLOW_VERSION)
