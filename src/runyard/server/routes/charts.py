"""Series of runs: their list, and the points of many of them for charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle.state import TERMINAL
from runyard.orchestrator.conductor import Conductor
from runyard.server.parameters import clamp
from runyard.server.responses import json_response
from runyard.tracking.charts import Window, bundle, read_series
from runyard.tracking.ingest import ingest
from runyard.tracking.series_index import list_series, locate_series, system_run_id
from runyard.tracking.value_entries import read_entries
from runyard.wire.charts import SeriesName, SeriesView

_MAX_SERIES = 1000
_ENDED = frozenset(state.value for state in TERMINAL)


class ChartQuery(BaseModel):
    series: list[SeriesName]
    max_points: int = Field(1000, alias="most")
    axis: str = "step"
    begin: float | None = Field(None, alias="from")
    end: float | None = Field(None, alias="to")
    after: list[int | None] | None = None


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["charts"])
    components = conductor.components

    def ingest_live(run_ids: Iterable[str]) -> dict[str, float]:
        """Include the values that were logged a moment ago. Returns the start time of each run."""
        runs = components.runs.states(list(run_ids))
        for run_id, (state, _) in runs.items():
            if state not in _ENDED:
                folder = components.folder(run_id)
                ingest(components.database, run_id, folder.journal)
                ingest(components.database, system_run_id(run_id), folder.system)
        return {run_id: started_at for run_id, (_, started_at) in runs.items()}

    @router.post("/charts")
    def charts(query: ChartQuery) -> Response:
        """Return the points of many series: their number (u32), then for each its length in bytes (u32) and columns.

        `from` and `to` select a part of the axis; without them the complete series is reduced to about `most` points
        that keep every peak. `after` has a cursor (or null) for each series, to return only newer points.
        """
        if len(query.series) > _MAX_SERIES:
            raise UserErrorException(f"expected at most {_MAX_SERIES:,} series, got {len(query.series):,}")
        if query.after is not None and len(query.after) != len(query.series):
            raise UserErrorException("`after` must have one cursor for each series")
        start_times = ingest_live(dict.fromkeys(series.run_id for series in query.series))
        max_points = clamp(query.max_points, 2, 10**9)
        cursors = query.after or [None] * len(query.series)
        points = []
        for series, after in zip(query.series, cursors):
            if series.run_id not in start_times:
                raise RunNotFound(f"no run {series.run_id!r} in this yard", run_id=series.run_id)
            window = Window(query.axis, query.begin, query.end, start_times[series.run_id])
            owner, name = locate_series(components.database, series.run_id, series.name)
            cursor = None if after is None else clamp(after, 0)
            points.append(read_series(components.database, owner, name, window, max_points=max_points, after=cursor))
        return Response(bundle(points), media_type="application/octet-stream")

    @router.get("/runs/{run_id}/series", response_model=list[SeriesView])
    def series(run_id: str) -> Response:
        """List the metrics with their kind, number of points, last value, minimum and maximum."""
        components.runs.load(run_id)
        ingest_live([run_id])
        return json_response(list_series(components.database, run_id))

    @router.get("/runs/{run_id}/system", response_model=list[SeriesView])
    def system(run_id: str) -> Response:
        """List the measurements of the run's nodes; their points are read like those of other series."""
        components.runs.load(run_id)
        ingest_live([run_id])
        measurements = list_series(components.database, system_run_id(run_id))
        return json_response([replace(series, name=f"system/{series.name}") for series in measurements])

    @router.get("/runs/{run_id}/values/{name:any}")
    def values(run_id: str, name: str, after: int = 0, limit: int = 1000) -> Response:
        """Return the logged values of a series from a cursor on: rows, tables, images, matrices, texts."""
        components.runs.load(run_id)
        ingest_live([run_id])
        limit = clamp(limit, 0, 100_000)
        return json_response(read_entries(components.database, run_id, name, after=clamp(after, 0), limit=limit))

    return router
