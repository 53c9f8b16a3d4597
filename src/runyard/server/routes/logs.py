"""The logs of a run: their list, any part of one, and full-text search."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Query, Response

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_report import logs
from runyard.server.parameters import clamp
from runyard.server.responses import json_response
from runyard.tracking.logs import LogMatch, log_sizes, read_log, search_log
from runyard.wire.run_inspection import LogView

_MAX_BYTES = 1 << 24
_MAX_MATCHES = 10_000
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "no-store"}


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["logs"])
    components = conductor.components

    def log_path(run_id: str, name: str) -> Path:
        folder = components.folder(components.runs.load(run_id).run_id).logs
        names = log_sizes(folder)
        if name not in names:
            hint = f"its logs: {', '.join(sorted(names))}" if names else "it has none yet"
            raise UserErrorException(f"run {run_id} has no log {name!r}", hint=hint)
        return folder / name

    @router.get("/runs/{run_id}/logs", response_model=list[LogView])
    def all_logs(run_id: str) -> Response:
        components.runs.load(run_id)
        return json_response(logs(components, run_id))

    @router.get("/runs/{run_id}/logs/{name}")
    def part(run_id: str, name: str, begin: int = Query(0, alias="from"), limit: int = 1 << 20) -> Response:
        """Return bytes from an offset on; a negative one counts from the end.

        The header `X-From` has the offset of the first byte, `X-Size` the size of the log.
        """
        path = log_path(run_id, name)
        data, end = read_log(path, clamp(begin, -(2**62)), clamp(limit, 0, _MAX_BYTES))
        size = max(path.stat().st_size, end)
        headers = {**_HEADERS, "X-From": str(end - len(data)), "X-Size": str(size)}
        return Response(data, headers=headers, media_type="text/plain; charset=utf-8")

    @router.get("/runs/{run_id}/logs/{name}/search", response_model=list[LogMatch])
    def search(run_id: str, name: str, text: str, limit: int = 1000) -> Response:
        """List the lines that contain a text, ignoring case: offset, number and content."""
        matches = search_log(log_path(run_id, name), text, clamp(limit, 1, _MAX_MATCHES))
        return json_response([match._asdict() for match in matches])

    return router
