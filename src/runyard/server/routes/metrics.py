"""Metrics: all of a run as the SDK gives them, and one metric's points by cursor."""

from __future__ import annotations

import json

from fastapi import APIRouter, Response

from runyard.orchestrator.conductor import Conductor
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import encode_points, read_chart, read_metrics, read_points
from runyard.tracking.series_index import place_of
from runyard.wire.runs import MetricsQuery


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["metrics"])
    rooms = conductor.rooms

    def read_up(run_ids: list[str]) -> None:
        """What was logged a moment ago is in the answer: journals are read on before they are asked about."""
        for run_id in run_ids:
            ingest(rooms.database, run_id, rooms.folder(run_id).journal)

    @router.post("/metrics")
    def metrics(query: MetricsQuery) -> Response:
        """Run id -> metric name -> value; `recursive` adds the runs below."""
        wanted = list(query.run_ids)
        for run_id in query.run_ids:
            rooms.runs.load(run_id)
            if query.recursive:
                wanted += rooms.runs.descendants(run_id)
        read_up(wanted)
        # Python's own JSON: it keeps NaN, infinity and whole numbers of any size, which are metrics like others
        body = json.dumps(read_metrics(rooms.database, wanted, query.name))
        return Response(body, media_type="application/json")

    @router.get("/runs/{run_id}/metrics/{name:any}")
    def points(run_id: str, name: str, after: int = 0, limit: int | None = None, most: int | None = None) -> Response:
        """One metric's points as binary columns (see runyard.wire.points); `most` asks for a down-sampled chart."""
        rooms.runs.load(run_id)
        read_up([run_id])
        place, name = place_of(rooms.database, run_id, name)
        if place != run_id:
            ingest(rooms.database, place, rooms.folder(run_id).system)
        if most is not None:
            found = read_chart(rooms.database, place, name, max(1, min(most, 10**9)))
        else:
            after = max(0, min(after, 2**62))
            limit = None if limit is None else max(0, min(limit, 2**62))
            found = read_points(rooms.database, place, name, after=after, limit=limit)
        return Response(encode_points(found), media_type="application/octet-stream")

    return router
