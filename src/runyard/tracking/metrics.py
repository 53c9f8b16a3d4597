"""Queries for metrics: values by name, points from a cursor on, and downsampled series for charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from sqlalchemy import Connection, func, select

from runyard.context.documents import SCALAR, to_v1_document
from runyard.spec.data import run_file_path
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import BUCKET_POINTS, Columns, Floats, Integers, as_float, decode, extremes, join
from runyard.tracking.series import (
    IMAGE,
    ROW,
    SERIES_COLUMNS,
    Series,
    all_series,
    block_data,
    decode_entries,
    family,
    find_series,
    preview,
    read_last_point,
)
from runyard.wire.points import NO_STEP, pack_points


@dataclass(frozen=True)
class Points:
    """Points of a metric. ``next`` is the cursor for later ones; missing steps are ``runyard.wire.points.NO_STEP``."""

    steps: Integers
    times: Floats
    values: Floats  # NaN for values that are not numbers
    next: int = 0

    def __len__(self) -> int:
        return len(self.values)


def read_metrics(database: Database, run_ids: list[str], name: Optional[str] = None) -> dict[str, dict[str, Any]]:
    """The metrics of each run by name: the value itself if there is one, else a list of values in order.

    Rows and tables are a dict of columns, each with the same rule. A run without metrics has an empty dict.
    """
    metrics: dict[str, dict[str, Any]] = {run_id: {} for run_id in run_ids}
    table = schema.series.c
    with database.read() as connection:
        for begin in range(0, len(run_ids), 500):  # below SQLite's limit of variables
            query = select(table.run_id, *SERIES_COLUMNS)
            query = query.where(table.run_id.in_(run_ids[begin : begin + 500]))
            if name is not None:
                query = query.where(table.name == name)
            for run_id, *parts in connection.execute(query.order_by(table.series_id)).all():
                series = Series(*parts)
                metrics[run_id][series.name] = _value(connection, run_id, series)
    return metrics


def read_last(database: Database, run_id: str) -> dict[str, Any]:
    """The last value of each metric by name, without reading all others; for rows and tables the last row."""
    values: dict[str, Any] = {}
    with database.read() as connection:
        for series in sorted(all_series(connection, run_id), key=lambda series: series.series_id):
            if series.kind == SCALAR:
                point = read_last_point(connection, series)
                if point is not None:
                    values[series.name] = point.plain()[0]
                continue
            data = [data for _, _, data in block_data(connection, series, after=max(series.count - 1, 0))]
            if data:
                values[series.name] = preview(series.kind, decode_entries(data[-1])[-1].content)
    return values


def read_points(database: Database, run_id: str, name: str, *, after: int = 0, limit: Optional[int] = None) -> Points:
    """The points from index ``after`` on, at most ``limit``; none for rows, images and unknown names."""
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
    """A series in about ``target`` points that include the minimum and maximum of each interval.

    Of a long series, only the summaries of its blocks are read.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None or series.kind != SCALAR:
            return _points([], 0)
        table = schema.blocks.c
        # summaries have two points per BUCKET_POINTS points; use them only if they are fine enough for the target
        if series.count * 2 >= target * BUCKET_POINTS:
            rows = connection.execute(
                # in one query: another thread may merge the small blocks at the end
                select(table.count, func.coalesce(table.summary, table.data))
                .where(table.series_id == series.series_id)
                .order_by(table.number)
            ).all()
            parts = [decode(data) for _, data in rows]
            counts = [count for count, _ in rows]
        else:
            blocks = list(block_data(connection, series))
            parts = [decode(data) for _, _, data in blocks]
            counts = [count for _, count, _ in blocks]
    # before points are selected: later their indices are unknown; those of a summary are known to within its block
    indices = [np.linspace(0, count - 1, len(part)).astype(np.int64) for count, part in zip(counts, parts)]
    starts = np.cumsum([0, *counts])
    points = _points(parts, int(starts[-1]))
    if indices:
        points = fill_steps(points, np.concatenate([start + offsets for start, offsets in zip(starts, indices)]))
    return downsample(points, target)


def fill_steps(points: Points, indices: Integers) -> Points:
    """Replace missing steps by the index in the series, so that downsampled points keep their position."""
    missing = points.steps == NO_STEP
    if not missing.any():
        return points
    return Points(np.where(missing, indices, points.steps), points.times, points.values, points.next)


def downsample(points: Points, target: int) -> Points:
    """At most ``target`` of the points: the extremes of equal intervals, and the start of NaN and infinity in them."""
    if len(points) <= max(target, 2):
        return points
    buckets = max(target // 2, 1)
    indices = extremes(points.values, buckets)
    if len(indices) > target:  # some are not finite: use fewer intervals, which have at most five points each
        indices = extremes(points.values, max(buckets - (len(indices) - target), target // 5, 1))
    if len(indices) > target:
        indices = extremes(points.values, max(target // 5, 1))
    return Points(points.steps[indices], points.times[indices], points.values[indices], points.next)


def encode_points(points: Points) -> bytes:
    """Serialize points for the HTTP API; decoded by :func:`runyard.wire.points.decode_points`."""
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
        return _unwrap_single(join([decode(data) for _, _, data in rows]).plain())
    entries = [entry for _, _, data in rows for entry in decode_entries(data)]
    if series.kind == IMAGE:
        return _unwrap_single([f"aml://artifactId/{run_file_path(run_id, entry.content)}" for entry in entries])
    if family(series.kind) != ROW:
        return _unwrap_single([to_v1_document(series.kind, entry.content) for entry in entries])
    columns: dict[str, list[Any]] = {}
    for entry in entries:
        for column, values in entry.content.items():
            columns.setdefault(column, []).extend(values)
    return {column: _unwrap_single(values) for column, values in columns.items()}


def _unwrap_single(values: list[Any]) -> Any:
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
