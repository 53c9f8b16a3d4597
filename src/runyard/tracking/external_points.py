"""Points by hand, without a journal: those that other programs bring, and the last ones that they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Text, null, select, type_coerce

from runyard.context import format as layout
from runyard.context.values import validate_name
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, Integers, decode
from runyard.tracking.series import SCALAR, Series, append, block_data, find_series

_SOME = 500  # below SQLite's limit of variables


class Point(NamedTuple):
    step: int
    time: float
    value: float


def add_points(database: Database, run_id: str, points: Mapping[str, Sequence[Point]]) -> None:
    """At the end of each metric, in one transaction: when it returns they are on disk."""
    scalars = {
        validate_name(name): _columns(
            np.array([point.step for point in some], np.int64),
            np.array([point.time for point in some], np.float64),
            np.array([point.value for point in some], np.float64),
        )
        for name, some in points.items()
        if some
    }
    if scalars:
        with database.write() as connection:
            append(connection, run_id, scalars, {})


def continue_points(
    database: Database, run_id: str, name: str, at: int, steps: Integers, times: Floats, values: Floats
) -> int:
    """Points from index ``at`` of the metric on; those that are there already are passed over. How many there are now.

    So what was sent twice is stored once. A gap before ``at`` stays with the sender: nothing is stored.
    """
    with database.write() as connection:
        known = find_series(connection, run_id, validate_name(name))
        have = known.count if known is not None else 0
        new = slice(have - at, None)
        if at > have or len(values[new]) == 0:
            return have
        append(connection, run_id, {name: _columns(steps[new], times[new], values[new])}, {})
        return have + len(values[new])


def last_numbers(database: Database, run_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """For each run the last value of each metric that is a number, as the listing has it."""
    found: dict[str, dict[str, float]] = {run_id: {} for run_id in run_ids}
    table = schema.series.c
    with database.read() as connection:
        for begin in range(0, len(run_ids), _SOME):
            query = select(table.run_id, table.name, type_coerce(table.last, Text))
            query = query.where(table.kind == SCALAR, table.last.is_not(null()))
            for run_id, name, last in connection.execute(query.where(table.run_id.in_(run_ids[begin : begin + _SOME]))):
                number = _number(last)
                if number is not None:
                    found[run_id][name] = number
    return found


def last_points(database: Database, run_id: str) -> dict[str, Point]:
    """The last point of each metric that is a number, with its step and time."""
    found: dict[str, Point] = {}
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
                    found[series.name] = Point(step, float(last.times[-1]), float(value))
    return found


def _number(said: str) -> float | None:
    """Of JSON as Python writes it; None for texts and the like."""
    try:
        return float(said)  # reads NaN and Infinity as well
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(said)


def _columns(steps: Integers, times: Floats, values: Floats) -> Columns:
    count = len(values)
    return Columns(
        np.ascontiguousarray(steps),
        np.ascontiguousarray(times),
        np.ascontiguousarray(values).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, layout.FLOAT, np.uint8),
    )
