"""Runs and points that come from elsewhere."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.import_run import take_in
from runyard.server.responses import json_response
from runyard.tracking.external_points import continue_points
from runyard.wire.exchange import ImportResult, ImportRun
from runyard.wire.points import decode_points


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["exchange"])
    rooms = conductor.rooms

    @router.post("/runs/import", response_model=ImportResult)
    def import_run(request: ImportRun) -> Response:
        """A run that took place elsewhere, as it ended. Sent again it is the same run."""
        return json_response(take_in(conductor, request))

    @router.put("/runs/{run_id}/metrics/{name:any}")
    async def put_points(run_id: str, name: str, request: Request, at: int = 0) -> Response:
        """The body is points (see runyard.wire.points) from index `at` on; those that are here are passed over."""
        body = await request.body()
        return json_response({"count": await run_in_threadpool(_put, run_id, name, at, body)})

    def _put(run_id: str, name: str, at: int, body: bytes) -> int:
        rooms.runs.load(run_id)
        points = decode_points(body)
        columns = np.array(points.steps, np.int64), np.array(points.times), np.array(points.values)
        count = continue_points(rooms.database, run_id, name, max(at, 0), *columns)
        conductor.bell.ring(run_id)
        return count

    return router
