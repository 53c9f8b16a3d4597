"""Import of runs and metric points from other tracking systems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.import_run import import_finished_run
from runyard.server.mlflow.imports import import_model, store_inputs
from runyard.server.responses import json_response
from runyard.tracking.external_points import continue_points
from runyard.wire.exchange import ImportModel, ImportModelResult, ImportResult, ImportRun
from runyard.wire.points import decode_points


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["exchange"])
    components = conductor.components

    @router.post("/runs/import", response_model=ImportResult)
    def import_run(request: ImportRun) -> Response:
        """Import a run. Idempotent: the same id yields the same run."""
        result = import_finished_run(conductor, request)
        has_new_inputs = store_inputs(conductor, request)
        return json_response(replace(result, changed=result.changed or (has_new_inputs and not result.created)))

    @router.post("/logged-models/import", response_model=ImportModelResult)
    def import_logged_model(request: ImportModel) -> Response:
        """Import a logged model of MLflow after its run. Idempotent: the same id yields the same model."""
        return json_response(import_model(conductor, request))

    @router.put("/runs/{run_id}/metrics/{name:any}")
    async def put_points(run_id: str, name: str, request: Request, at: int = 0) -> Response:
        """Append the points in the body (see runyard.wire.points), which start at index `at`; skip existing ones."""
        body = await request.body()
        return json_response({"count": await run_in_threadpool(_put, run_id, name, at, body)})

    def _put(run_id: str, name: str, at: int, body: bytes) -> int:
        components.runs.load(run_id)
        points = decode_points(body)
        columns = np.array(points.steps, np.int64), np.array(points.times), np.array(points.values)
        count = continue_points(components.database, run_id, name, max(at, 0), *columns)
        conductor.notifier.notify(run_id)
        return count

    return router
