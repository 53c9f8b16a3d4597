"""Points that other programs add without a journal, and lookups of the last points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Text, null, select, type_coerce

from runyard.context import format as layout
from runyard.context.documents import SCALAR
from runyard.context.values import validate_name
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, Integers, decode
from runyard.tracking.series import Series, append, block_data, find_series

_BATCH = 500  # below SQLite's limit of variables


class Point(NamedTuple):
    step: int
    time: float
    value: float


def add_points(database: Database, run_id: str, points: Mapping[str, Sequence[Point]]) -> None:
    """Append points to metrics in one transaction; they are on disk when this returns."""
    scalars = {
        validate_name(name): _columns(
            np.array([point.step for point in series], np.int64),
            np.array([point.time for point in series], np.float64),
            np.array([point.value for point in series], np.float64),
        )
        for name, series in points.items()
        if series
    }
    if scalars:
        with database.write() as connection:
            append(connection, run_id, scalars, {})


def continue_points(
    database: Database, run_id: str, name: str, start: int, steps: Integers, times: Floats, values: Floats
) -> int:
    """Store points that begin at index ``start`` of a metric, skip those already stored, and return the new count.

    Points that are sent twice are stored once. If there is a gap before ``start``, nothing is stored: the sender must
    send the missing points first.
    """
    with database.write() as connection:
        series = find_series(connection, run_id, validate_name(name))
        count = series.count if series is not None else 0
        new = slice(count - start, None)
        if start > count or len(values[new]) == 0:
            return count
        append(connection, run_id, {name: _columns(steps[new], times[new], values[new])}, {})
        return count + len(values[new])


def last_numbers(database: Database, run_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """The last value of each numeric metric, by run and name."""
    numbers: dict[str, dict[str, float]] = {run_id: {} for run_id in run_ids}
    table = schema.series.c
    with database.read() as connection:
        for begin in range(0, len(run_ids), _BATCH):
            query = select(table.run_id, table.name, type_coerce(table.last, Text))
            query = query.where(table.kind == SCALAR, table.last.is_not(null()))
            for run_id, name, last in connection.execute(
                query.where(table.run_id.in_(run_ids[begin : begin + _BATCH]))
            ):
                number = _number(last)
                if number is not None:
                    numbers[run_id][name] = number
    return numbers


def last_points(database: Database, run_id: str) -> dict[str, Point]:
    """The last point of each numeric metric, by name."""
    points: dict[str, Point] = {}
    table = schema.series.c
    with database.read() as connection:
        query = select(table.series_id, table.name, table.kind, table.count)
        for row in connection.execute(query.where(table.run_id == run_id, table.kind == SCALAR)).all():
            series = Series(*row)
            data: list[Any] = [data for _, _, data in block_data(connection, series, after=max(series.count - 1, 0))]
            if data:
                last = decode(data[-1])
                value = last.take(slice(len(last) - 1, None)).plain()[0]
                if isinstance(value, (int, float)):
                    step = int(last.steps[-1])
                    points[series.name] = Point(step, float(last.times[-1]), float(value))
    return points


def _number(text: str) -> float | None:
    """Parse a JSON number as Python writes it; None for other JSON values."""
    try:
        return float(text)  # accepts also NaN and Infinity
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(text)


def _columns(steps: Integers, times: Floats, values: Floats) -> Columns:
    count = len(values)
    return Columns(
        np.ascontiguousarray(steps),
        np.ascontiguousarray(times),
        np.ascontiguousarray(values).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, layout.FLOAT, np.uint8),
    )
