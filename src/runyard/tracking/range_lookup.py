"""Finds the index range of an axis interval in a long series, without reading the series."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Optional

import numpy as np
from sqlalchemy import select

from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, decode
from runyard.tracking.series import find_series


class IndexRange(NamedTuple):
    first: int = 0
    limit: Optional[int] = None  # number of points; None: to the end
    total: Optional[int] = None  # number of points in the series


def find_range(
    database: Database,
    run_id: str,
    name: str,
    axis: Callable[[Columns], Optional[Floats]],
    begin: Optional[float],
    end: Optional[float],
) -> IndexRange:
    """A range that contains at least the points from ``begin`` to ``end`` and one more on each side.

    Uses the summaries of the blocks if the axis is ascending; otherwise the range is the complete series. ``axis``
    returns the positions of points on the axis, or None if they are unknown.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None:
            return IndexRange()
        blocks = schema.blocks.c
        query = select(blocks.first, blocks.count, blocks.summary).where(blocks.series_id == series.series_id)
        rows = connection.execute(query.order_by(blocks.number)).all()
    total = sum(count for _, count, _ in rows)
    # the last blocks may be too small to have a summary: they are included if the range reaches the end
    blocks_with_summary = [
        (first, count, axis(decode(summary))) for first, count, summary in rows if summary is not None
    ]
    positions = [
        axis_values for _, _, axis_values in blocks_with_summary if axis_values is not None and len(axis_values)
    ]
    if len(positions) < max(len(blocks_with_summary), 1) or not (np.diff(np.concatenate(positions)) >= 0).all():
        return IndexRange(total=total)
    low, high = 0, len(positions)
    if begin is not None:  # a block extends beyond its summary, up to the start of the next block
        low = max(int(np.searchsorted([values[0] for values in positions], begin, side="left")) - 1, 0)
    if end is not None:
        high = min(int(np.searchsorted([values[-1] for values in positions], end, side="right")) + 1, high)
    first = max(blocks_with_summary[low][0] - 1, 0)
    if high == len(positions):
        return IndexRange(first, total=total)
    last_start, count, _ = blocks_with_summary[high - 1]
    return IndexRange(first, last_start + count + 1 - first, total)
