"""Finds points that are stored already: equal points that a client sends again are one point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, or_, select

from runyard.store import schema
from runyard.store.database import batches
from runyard.tracking.blocks import Columns, Floats, decode
from runyard.tracking.series import Series

_table = schema.blocks.c
# Built once: constructing a statement takes longer than executing it.
_RANGES = select(
    _table.series_id,
    _table.number,
    _table.minimum_step,
    _table.maximum_step,
    _table.minimum_time,
    _table.maximum_time,
    _table.minimum,
    _table.maximum,
).where(
    _table.series_id.in_(bindparam("series_ids", expanding=True)),
    or_(_table.maximum_time >= bindparam("earliest"), _table.maximum_time.is_(None)),
)


def without_stored(
    connection: Connection, series: Mapping[str, Series], scalars: Mapping[str, Columns]
) -> dict[str, Columns]:
    """The points that differ from all stored ones, and from each other, in step, time or value.

    Only blocks whose ranges of steps, times and values include a new point are read: usually none, because the times
    of new points are later.

    Args:
        connection: A transaction that holds the write lock.
        series: The existing series by name.
        scalars: The new points by name.
    """
    numbers = _blocks_to_read(connection, series, scalars)
    new: dict[str, Columns] = {}
    for name, points in scalars.items():
        keys = _keys(points)
        stored: set[Any] = set()
        for number in numbers.get(name, ()):
            query = select(_table.data).where(_table.series_id == series[name].series_id, _table.number == number)
            block = decode(connection.execute(query).scalar_one())
            equal = np.isin(block.steps, points.steps) & np.isin(block.times, points.times)
            stored.update(_keys(block.take(np.flatnonzero(equal))))
        chosen = {key: index for index, key in reversed(list(enumerate(keys))) if key not in stored}
        if len(chosen) == len(points):
            new[name] = points
        elif chosen:
            new[name] = points.take(np.array(sorted(chosen.values()), np.intp))
    return new


def _blocks_to_read(
    connection: Connection, series: Mapping[str, Series], scalars: Mapping[str, Columns]
) -> dict[str, list[int]]:
    """The numbers of the blocks that may contain a new point, by name."""
    names = {existing.series_id: name for name, existing in series.items()}
    if not names:
        return {}
    earliest = min(float(scalars[name].times.min()) for name in series)
    numbers: dict[str, list[int]] = {}
    for batch in batches(names):
        rows = connection.execute(_RANGES, {"series_ids": batch, "earliest": earliest})
        for series_id, number, *limits in rows:
            name = names[series_id]
            if _may_contain(limits, scalars[name]):
                numbers.setdefault(name, []).append(number)
    return numbers


def _may_contain(limits: Iterable[float | None], points: Columns) -> bool:
    low_step, high_step, low_time, high_time, low, high = limits
    if low_step is None or high_step is None or low_time is None or high_time is None:
        return True
    near = (points.steps >= low_step) & (points.steps <= high_step)
    near &= (points.times >= low_time) & (points.times <= high_time)
    values = points.numbers()
    is_in_range = np.isnan(values)
    if low is not None and high is not None:
        is_in_range |= (values >= low) & (values <= high)
    return bool((near & is_in_range).any())


def _keys(points: Columns) -> list[tuple[int, float, int]]:
    """Step, time and value of each point; the bits of the value, so that NaN is equal to itself."""
    return list(zip(points.steps.tolist(), points.times.tolist(), _bits(points.numbers())))


def _bits(numbers: Floats) -> list[int]:
    canonical = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # without negative zeros
    bits: list[int] = canonical.view(np.int64).tolist()
    return bits
