"""Points that other programs add without a journal, and lookups of the last points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Text, null, select, type_coerce

from runyard.context import format as layout
from runyard.context.documents import SCALAR
from runyard.context.values import validate_name
from runyard.store import schema
from runyard.store.database import Database, batches
from runyard.tracking.blocks import Columns, Floats, Integers
from runyard.tracking.series import all_series, append, find_scalars, find_series, read_last_point, to_number
from runyard.tracking.stored_points import without_stored
from runyard.wire.points import NO_STEP


class Point(NamedTuple):
    step: int
    time: float
    value: float


def add_points(database: Database, run_id: str, points: Mapping[str, Sequence[Point]]) -> None:
    """Append points to metrics in one transaction; they are on disk when this returns.

    Points that are equal in step, time and value are stored once: a client sends a request again if it did not receive
    the response.
    """
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
            new = without_stored(connection, find_scalars(connection, run_id, scalars), scalars)
            if new:
                append(connection, run_id, new, {})


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


def last_points_of_runs(database: Database, run_ids: Sequence[str]) -> dict[str, dict[str, Point]]:
    """The last point of each numeric metric, by run and name, without reading blocks.

    A point of a metric without steps has its index as its step.
    """
    points: dict[str, dict[str, Point]] = {run_id: {} for run_id in run_ids}
    table = schema.series.c
    columns = table.run_id, table.name, table.last_index, table.last_step, table.last_time
    query = select(*columns, type_coerce(table.last, Text)).where(table.kind == SCALAR, table.last.is_not(null()))
    with database.read() as connection:
        for batch in batches(run_ids):
            for run_id, name, index, step, time, last in connection.execute(query.where(table.run_id.in_(batch))):
                number = to_number(last)
                if number is not None:
                    points[run_id][name] = Point(index if step == NO_STEP else step, time or 0.0, number)
    return points


def last_points(database: Database, run_id: str) -> dict[str, Point]:
    """The last point of each numeric metric, by name; a point without a step has its index as its step."""
    points: dict[str, Point] = {}
    with database.read() as connection:
        for series in all_series(connection, run_id):
            point = read_last_point(connection, series)
            value = None if point is None else point.plain()[0]
            if point is not None and isinstance(value, (int, float)):
                step = int(point.steps[0])
                step = (series.last_index or 0) if step == NO_STEP else step
                points[series.name] = Point(step, float(point.times[0]), float(point.numbers()[0]))
    return points


def _columns(steps: Integers, times: Floats, values: Floats) -> Columns:
    count = len(values)
    return Columns(
        np.ascontiguousarray(steps),
        np.ascontiguousarray(times),
        np.ascontiguousarray(values).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, layout.FLOAT, np.uint8),
    )
