"""Many series at once for a chart: the whole of each or a window of it, in few points, or only what came since."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, Floats, Integers
from runyard.tracking.metrics import Points, downsample, encode_points, read_chart, read_points
from runyard.tracking.range_lookup import Stretch, find_stretch
from runyard.wire.points import NO_STEP

AXES = ("step", "time", "relative")
_COUNT = struct.Struct("<I")


@dataclass(frozen=True)
class Window:
    """What part of an axis is looked at; None: to its end. ``origin`` is what relative times count from."""

    axis: str = "step"
    begin: Optional[float] = None
    end: Optional[float] = None
    origin: float = 0.0

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UserErrorException(f"there is no axis {self.axis!r}", hint=f"the axes: {', '.join(AXES)}")

    @property
    def is_whole(self) -> bool:
        return self.begin is None and self.end is None

    def places(self, steps: Integers, times: Floats) -> Floats:
        if self.axis == "step":
            return steps.astype(np.float64)
        return times - self.origin if self.axis == "relative" else times

    def known_places(self, columns: Columns) -> Optional[Floats]:
        """None where a step was not given: its place is known only by counting."""
        if self.axis == "step" and (columns.steps == NO_STEP).any():
            return None
        return self.places(columns.steps, columns.times)


def read_series(
    database: Database, run_id: str, name: str, window: Window, *, most: int, after: Optional[int] = None
) -> Points:
    """At most about ``most`` points, with every peak among them; ``after`` is a cursor of an earlier answer."""
    if after is None and window.is_whole:
        whole = read_chart(database, run_id, name, most)
        if len(whole) < whole.next:
            # people read the last value off a chart: it must be the one that was logged last, peak or not
            whole = _joined(whole, read_points(database, run_id, name, after=whole.next - 1))
        return _stepped(whole, np.linspace(0, max(whole.next - 1, 0), len(whole)).astype(np.int64))
    stretch = Stretch(after or 0)
    if after is None:
        stretch = find_stretch(database, run_id, name, window.known_places, window.begin, window.end)
    points = read_points(database, run_id, name, after=stretch.first, limit=stretch.limit)
    points = _stepped(points, np.arange(stretch.first, stretch.first + len(points)))
    if stretch.total is not None:
        points = replace(points, next=stretch.total)
    if not window.is_whole:
        points = _within(points, window)
    few = downsample(points, most)
    return (
        few
        if len(few) == len(points)
        else _joined(few, Points(points.steps[-1:], points.times[-1:], points.values[-1:], points.next))
    )


def bundle(series: Iterable[Points]) -> bytes:
    """How many series, then each with its length in bytes before it."""
    blocks = [encode_points(points) for points in series]
    parts = [_COUNT.pack(len(blocks))]
    for block in blocks:
        parts += (_COUNT.pack(len(block)), block)
    return b"".join(parts)


def _stepped(points: Points, indices: Integers) -> Points:
    """Where no step was given, it is the place in the series: a few of many points still lie where they belong."""
    missing = points.steps == NO_STEP
    if not missing.any():
        return points
    return Points(np.where(missing, indices, points.steps), points.times, points.values, points.next)


def _joined(few: Points, last: Points) -> Points:
    if len(few) and len(last) and few.times[-1] == last.times[-1] and few.steps[-1] == last.steps[-1]:
        return few
    return Points(
        np.concatenate([few.steps, last.steps]),
        np.concatenate([few.times, last.times]),
        np.concatenate([few.values, last.values]),
        few.next,
    )


def _within(points: Points, window: Window) -> Points:
    at = window.places(points.steps, points.times)
    inside = np.ones(len(points), np.bool_)
    if window.begin is not None:
        inside &= at >= window.begin
    if window.end is not None:
        inside &= at <= window.end
    if len(inside) and not inside.all():
        # a line goes on beyond both edges of the picture: the neighbours outside are drawn too
        edges = np.flatnonzero(inside)
        if len(edges):
            inside[max(edges[0] - 1, 0)] = True
            inside[min(edges[-1] + 1, len(inside) - 1)] = True
    return Points(points.steps[inside], points.times[inside], points.values[inside], points.next)
