"""Metrics as people ask for them: values by name, points from a cursor on, a chart's worth of a long series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from sqlalchemy import Connection, func, select

from runyard.context.documents import to_v1_document
from runyard.spec.data import place_of_run_file
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import STRETCH_POINTS, Columns, Floats, Integers, as_float, decode, extremes, join
from runyard.tracking.series import IMAGE, ROW, SCALAR, Series, block_data, brief, decode_entries, family, find_series
from runyard.wire.points import pack_points


@dataclass(frozen=True)
class Points:
    """``next`` is the cursor for what comes after; a step that was not given is ``runyard.wire.points.NO_STEP``."""

    steps: Integers
    times: Floats
    values: Floats  # NaN for what is not a number
    next: int = 0

    def __len__(self) -> int:
        return len(self.values)


def read_metrics(database: Database, run_ids: list[str], name: Optional[str] = None) -> dict[str, dict[str, Any]]:
    """For each run its metrics by name: a bare value when there is one, a list in order when there are several.

    Rows and tables are a dict of columns, each by the same rule. A run without metrics has an empty dict.
    """
    metrics: dict[str, dict[str, Any]] = {run_id: {} for run_id in run_ids}
    table = schema.series.c
    with database.read() as connection:
        for begin in range(0, len(run_ids), 500):  # below SQLite's limit of variables
            query = select(table.run_id, table.series_id, table.name, table.kind, table.count)
            query = query.where(table.run_id.in_(run_ids[begin : begin + 500]))
            if name is not None:
                query = query.where(table.name == name)
            for run_id, *parts in connection.execute(query.order_by(table.series_id)).all():
                series = Series(*parts)
                metrics[run_id][series.name] = _value(connection, run_id, series)
    return metrics


def read_last(database: Database, run_id: str) -> dict[str, Any]:
    """The last value of each metric by its name, without reading the others; of rows and tables their last row."""
    found: dict[str, Any] = {}
    table = schema.series.c
    with database.read() as connection:
        query = select(table.series_id, table.name, table.kind, table.count).where(table.run_id == run_id)
        for row in connection.execute(query.order_by(table.series_id)).all():
            series = Series(*row)
            data = [data for _, _, data in block_data(connection, series, after=max(series.count - 1, 0))]
            if not data:
                continue
            if series.kind == SCALAR:
                found[series.name] = decode(data[-1]).plain()[-1]
                continue
            found[series.name] = brief(series.kind, decode_entries(data[-1])[-1].content)
    return found


def read_points(database: Database, run_id: str, name: str, *, after: int = 0, limit: Optional[int] = None) -> Points:
    """The points from index ``after`` on, at most ``limit``; none for rows, images and names that are not known."""
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None or series.kind != SCALAR:
            return _points([], after)
        before = None if limit is None else after + limit
        rows = list(block_data(connection, series, after=after, before=before))
    parts = []
    for first, count, data in rows:
        begin, end = max(after - first, 0), count if before is None else min(before - first, count)
        part = decode(data)
        parts.append(part if (begin, end) == (0, count) else part.take(slice(begin, end)))
    return _points(parts, after + sum(len(part) for part in parts))


def read_chart(database: Database, run_id: str, name: str, target: int = 1000) -> Points:
    """The whole series in about ``target`` points, with the least and the greatest of each stretch among them.

    A long series is not read: the summaries of its blocks are.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None or series.kind != SCALAR:
            return _points([], 0)
        table = schema.blocks.c
        # the summaries have two points for each stretch of STRETCH_POINTS; they must be no coarser than what is asked
        if series.count * 2 >= target * STRETCH_POINTS:
            rows = connection.execute(
                # in one look: small blocks at the end are joined while others read
                select(table.count, func.coalesce(table.summary, table.data))
                .where(table.series_id == series.series_id)
                .order_by(table.number)
            ).all()
            parts = [decode(data) for _, data in rows]
            total = sum(count for count, _ in rows)
        else:
            found = list(block_data(connection, series))
            parts = [decode(data) for _, _, data in found]
            total = sum(count for _, count, _ in found)
    return downsample(_points(parts, total), target)


def downsample(points: Points, target: int) -> Points:
    """At most ``target`` of the points: the least and the greatest of each of ``target // 2`` equal stretches."""
    if len(points) <= max(target, 2):
        return points
    chosen = extremes(points.values, max(target // 2, 1))
    return Points(points.steps[chosen], points.times[chosen], points.values[chosen], points.next)


def encode_points(points: Points) -> bytes:
    """For the wire; :func:`runyard.wire.points.decode_points` reads it with the standard library alone."""
    return pack_points(
        len(points),
        points.next,
        points.steps.astype("<i8", copy=False).tobytes(),
        points.times.astype("<f8", copy=False).tobytes(),
        points.values.astype("<f8", copy=False).tobytes(),
    )


def _value(connection: Connection, run_id: str, series: Series) -> Any:
    rows = block_data(connection, series)
    if series.kind == SCALAR:
        return _by_count(join([decode(data) for _, _, data in rows]).plain())
    entries = [entry for _, _, data in rows for entry in decode_entries(data)]
    if series.kind == IMAGE:
        return _by_count([f"aml://artifactId/{place_of_run_file(run_id, entry.content)}" for entry in entries])
    if family(series.kind) != ROW:
        return _by_count([to_v1_document(series.kind, entry.content) for entry in entries])
    columns: dict[str, list[Any]] = {}
    for entry in entries:
        for column, values in entry.content.items():
            columns.setdefault(column, []).extend(values)
    return {column: _by_count(values) for column, values in columns.items()}


def _by_count(values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    kinds = set(map(type, values))
    if float in kinds and int in kinds:
        return [as_float(value) if type(value) is int else value for value in values]
    return values


def _points(parts: Iterable[Columns], cursor: int) -> Points:
    parts = list(parts)
    if not parts:
        return Points(np.empty(0, np.int64), np.empty(0), np.empty(0), cursor)
    return Points(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.numbers() for part in parts]),
        cursor,
    )
