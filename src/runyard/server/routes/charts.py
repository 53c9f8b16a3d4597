"""Series of runs: what there is, and points for charts of many of them at once."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle.state import TERMINAL
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response
from runyard.tracking.charts import Window, bundle, read_series
from runyard.tracking.ingest import ingest
from runyard.tracking.series_index import place_of, series_of, system_run
from runyard.tracking.value_entries import read_entries
from runyard.wire.charts import SeriesName, SeriesView

_MOST_SERIES = 1000
_ENDED = frozenset(state.value for state in TERMINAL)


class ChartQuery(BaseModel):
    series: list[SeriesName]
    most: int = 1000
    axis: str = "step"
    begin: float | None = Field(None, alias="from")
    end: float | None = Field(None, alias="to")
    after: list[int | None] | None = None


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["charts"])
    rooms = conductor.rooms

    def read_up(run_ids: Iterable[str]) -> dict[str, float]:
        """What was logged a moment ago is in the answer. When each run began, on the way."""
        found = rooms.runs.begun(list(run_ids))
        for run_id, (state, _) in found.items():
            if state not in _ENDED:
                folder = rooms.folder(run_id)
                ingest(rooms.database, run_id, folder.journal)
                ingest(rooms.database, system_run(run_id), folder.system)
        return {run_id: at for run_id, (_, at) in found.items()}

    @router.post("/charts")
    def charts(query: ChartQuery) -> Response:
        """Points of many series: how many (u32), then each with its length in bytes (u32) before its columns.

        Without `from` and `to` the whole series in about `most` points that keep every peak; with them that part of
        the axis. `after` has a cursor for each series (or null): then only what came since.
        """
        if len(query.series) > _MOST_SERIES:
            raise UserErrorException(f"{len(query.series):,} series are more than {_MOST_SERIES:,}, the most at once")
        if query.after is not None and len(query.after) != len(query.series):
            raise UserErrorException("`after` must have one cursor for each of the series")
        begun = read_up(dict.fromkeys(one.run_id for one in query.series))
        most = max(2, min(query.most, 10**9))
        cursors = query.after or [None] * len(query.series)
        points = []
        for one, after in zip(query.series, cursors):
            if one.run_id not in begun:
                raise RunNotFound(f"no run {one.run_id!r} in this yard", run_id=one.run_id)
            window = Window(query.axis, query.begin, query.end, begun[one.run_id])
            place = place_of(rooms.database, one.run_id, one.name)
            cursor = None if after is None else max(0, min(after, 2**62))
            points.append(read_series(rooms.database, *place, window, most=most, after=cursor))
        return Response(bundle(points), media_type="application/octet-stream")

    @router.get("/runs/{run_id}/series", response_model=list[SeriesView])
    def series(run_id: str) -> Response:
        """Every metric with its kind, how many points it has, its last value, its least and its greatest."""
        rooms.runs.load(run_id)
        read_up([run_id])
        return json_response(series_of(rooms.database, run_id))

    @router.get("/runs/{run_id}/system", response_model=list[SeriesView])
    def system(run_id: str) -> Response:
        """What the agents measured on the run's nodes; the points are read as those of other series."""
        rooms.runs.load(run_id)
        read_up([run_id])
        found = series_of(rooms.database, system_run(run_id))
        return json_response([SeriesView(f"system/{s.name}", s.kind, s.count, s.last, s.min, s.max) for s in found])

    @router.get("/runs/{run_id}/values/{name:any}")
    def values(run_id: str, name: str, after: int = 0, limit: int = 1000) -> Response:
        """The values of a series as they were logged, from a cursor on: rows, tables, images, matrices, texts."""
        rooms.runs.load(run_id)
        read_up([run_id])
        after, limit = max(0, min(after, 2**62)), max(0, min(limit, 100_000))
        return json_response(read_entries(rooms.database, run_id, name, after=after, limit=limit))

    return router
