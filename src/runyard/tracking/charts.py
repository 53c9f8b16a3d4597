"""Reads series for charts: completely or a window, downsampled, or only the points after a cursor."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, Integers
from runyard.tracking.metrics import Points, downsample, encode_points, fill_steps, read_chart, read_points
from runyard.tracking.range_lookup import IndexRange, find_range
from runyard.wire.points import NO_STEP

AXES = ("step", "time", "relative")
_COUNT = struct.Struct("<I")


@dataclass(frozen=True)
class Window:
    """An interval of an axis; None means unbounded. Relative times are measured from ``origin``."""

    axis: str = "step"
    begin: Optional[float] = None
    end: Optional[float] = None
    origin: float = 0.0

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UserErrorException(f"unknown axis {self.axis!r}", hint=f"axes: {', '.join(AXES)}")

    @property
    def is_unbounded(self) -> bool:
        return self.begin is None and self.end is None

    def positions(self, steps: Integers, times: Floats) -> Floats:
        if self.axis == "step":
            return steps.astype(np.float64)
        return times - self.origin if self.axis == "relative" else times

    def known_positions(self, columns: Columns) -> Optional[Floats]:
        """The positions on the axis; None if steps are missing, because then they depend on the index."""
        if self.axis == "step" and (columns.steps == NO_STEP).any():
            return None
        return self.positions(columns.steps, columns.times)


def read_series(
    database: Database, run_id: str, name: str, window: Window, *, max_points: int, after: Optional[int] = None
) -> Points:
    """Read about ``max_points`` points that include every peak. ``after`` is the cursor of an earlier result."""
    if after is None and window.is_unbounded:
        points = read_chart(database, run_id, name, max_points)
        if len(points) < points.next:
            # users read the last value from a chart, so the last logged point must be included
            last = read_points(database, run_id, name, after=points.next - 1)
            points = _append_last(points, fill_steps(last, np.arange(points.next - 1, points.next - 1 + len(last))))
        return points
    index_range = IndexRange(after or 0)
    if after is None:
        index_range = find_range(database, run_id, name, window.known_positions, window.begin, window.end)
    points = read_points(database, run_id, name, after=index_range.first, limit=index_range.limit)
    points = fill_steps(points, np.arange(index_range.first, index_range.first + len(points)))
    if index_range.total is not None:
        points = replace(points, next=index_range.total)
    if not window.is_unbounded:
        points = _crop(points, window)
    sample = downsample(points, max_points)
    if len(sample) == len(points):
        return sample
    return _append_last(sample, Points(points.steps[-1:], points.times[-1:], points.values[-1:], points.next))


def bundle(series: Iterable[Points]) -> bytes:
    """Serialize several series: their number, then each with its length in bytes."""
    blocks = [encode_points(points) for points in series]
    parts = [_COUNT.pack(len(blocks))]
    for block in blocks:
        parts += (_COUNT.pack(len(block)), block)
    return b"".join(parts)


def _append_last(points: Points, last: Points) -> Points:
    if len(points) and len(last) and points.times[-1] == last.times[-1] and points.steps[-1] == last.steps[-1]:
        return points
    return Points(
        np.concatenate([points.steps, last.steps]),
        np.concatenate([points.times, last.times]),
        np.concatenate([points.values, last.values]),
        points.next,
    )


def _crop(points: Points, window: Window) -> Points:
    positions = window.positions(points.steps, points.times)
    inside = np.ones(len(points), np.bool_)
    if window.begin is not None:
        inside &= positions >= window.begin
    if window.end is not None:
        inside &= positions <= window.end
    if len(inside) and not inside.all():
        # include the neighbors outside: the line continues beyond both edges of the chart
        edges = np.flatnonzero(inside)
        if len(edges):
            inside[max(edges[0] - 1, 0)] = True
            inside[min(edges[-1] + 1, len(inside) - 1)] = True
    return Points(points.steps[inside], points.times[inside], points.values[inside], points.next)
