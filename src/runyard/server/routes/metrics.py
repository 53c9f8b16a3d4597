"""Metrics: the values of all metrics as the SDK returns them, and the points of one metric by cursor."""

from __future__ import annotations

import json

from fastapi import APIRouter, Query, Response

from runyard.orchestrator.conductor import Conductor
from runyard.server.parameters import clamp
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import encode_points, read_chart, read_metrics, read_points
from runyard.tracking.series_index import locate_series
from runyard.wire.runs import MetricsQuery


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["metrics"])
    components = conductor.components

    def ingest_journals(run_ids: list[str]) -> None:
        """Include the values that were logged a moment ago."""
        for run_id in run_ids:
            ingest(components.database, run_id, components.folder(run_id).journal)

    @router.post("/metrics")
    def metrics(query: MetricsQuery) -> Response:
        """Return run id -> metric name -> value; `recursive` includes descendants."""
        run_ids = list(query.run_ids)
        for run_id in query.run_ids:
            components.runs.load(run_id)
            if query.recursive:
                run_ids += components.runs.descendants(run_id)
        ingest_journals(run_ids)
        # Python's own JSON supports NaN, infinity and integers of any size, which are valid metric values
        body = json.dumps(read_metrics(components.database, run_ids, query.name))
        return Response(body, media_type="application/json")

    @router.get("/runs/{run_id}/metrics/{name:any}")
    def points(
        run_id: str,
        name: str,
        after: int = 0,
        limit: int | None = None,
        max_points: int | None = Query(None, alias="most"),
    ) -> Response:
        """Return a metric's points as binary columns (see runyard.wire.points); `most` down-samples them."""
        components.runs.load(run_id)
        ingest_journals([run_id])
        owner, name = locate_series(components.database, run_id, name)
        if owner != run_id:
            ingest(components.database, owner, components.folder(run_id).system)
        if max_points is not None:
            series = read_chart(components.database, owner, name, clamp(max_points, 1, 10**9))
        else:
            limit = None if limit is None else clamp(limit, 0)
            series = read_points(components.database, owner, name, after=clamp(after, 0), limit=limit)
        return Response(encode_points(series), media_type="application/octet-stream")

    return router
