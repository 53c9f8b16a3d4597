"""The logs of a run: which there are, any part of one, and the lines that hold a text."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Query, Response

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_report import logs
from runyard.server.responses import json_response
from runyard.tracking.logs import Found, log_sizes, read_log, search_log
from runyard.wire.run_inspection import LogView

_LARGEST = 1 << 24
_MOST_FOUND = 10_000
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "no-store"}


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["logs"])
    rooms = conductor.rooms

    def place(run_id: str, name: str) -> Path:
        folder = rooms.folder(rooms.runs.load(run_id).run_id).logs
        known = log_sizes(folder)
        if name not in known:
            hint = f"its logs: {', '.join(sorted(known))}" if known else "it has none yet"
            raise UserErrorException(f"run {run_id} has no log {name!r}", hint=hint)
        return folder / name

    @router.get("/runs/{run_id}/logs", response_model=list[LogView])
    def all_logs(run_id: str) -> Response:
        rooms.runs.load(run_id)
        return json_response(logs(rooms, run_id))

    @router.get("/runs/{run_id}/logs/{name}")
    def part(run_id: str, name: str, begin: int = Query(0, alias="from"), limit: int = 1 << 20) -> Response:
        """Bytes from an offset on; a negative one counts from the end. `X-From` is where they begin, `X-Size` the size
        of the whole."""
        path = place(run_id, name)
        begin = max(-(2**62), min(begin, 2**62))
        data, following = read_log(path, begin, max(0, min(limit, _LARGEST)))
        size = max(path.stat().st_size, following)
        headers = {**_HEADERS, "X-From": str(following - len(data)), "X-Size": str(size)}
        return Response(data, headers=headers, media_type="text/plain; charset=utf-8")

    @router.get("/runs/{run_id}/logs/{name}/search", response_model=list[Found])
    def search(run_id: str, name: str, text: str, limit: int = 1000) -> Response:
        """The lines that hold a text, whatever its capitals: where each begins, its number, and the line."""
        found = search_log(place(run_id, name), text, max(1, min(limit, _MOST_FOUND)))
        return json_response([line._asdict() for line in found])

    return router
