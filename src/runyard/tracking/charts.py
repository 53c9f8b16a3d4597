"""Many series at once for a chart: the whole of each or a window of it, in few points, or only what came since."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

import numpy as np

from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.tracking.blocks import Floats
from runyard.tracking.metrics import Points, downsample, encode_points, read_chart, read_points
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


def read_series(
    database: Database, run_id: str, name: str, window: Window, *, most: int, after: Optional[int] = None
) -> Points:
    """At most about ``most`` points, with every peak among them; ``after`` is a cursor of an earlier answer."""
    if after is None and window.is_whole:
        return read_chart(database, run_id, name, most)
    points = read_points(database, run_id, name, after=after or 0)
    if not window.is_whole:
        points = _within(points, window, after or 0)
    return downsample(points, most)


def bundle(series: Iterable[Points]) -> bytes:
    """How many series, then each with its length in bytes before it."""
    blocks = [encode_points(points) for points in series]
    parts = [_COUNT.pack(len(blocks))]
    for block in blocks:
        parts += (_COUNT.pack(len(block)), block)
    return b"".join(parts)


def _within(points: Points, window: Window, first: int) -> Points:
    at = _places(points, window, first)
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


def _places(points: Points, window: Window, first: int) -> Floats:
    if window.axis == "time":
        return points.times
    if window.axis == "relative":
        return points.times - window.origin
    given = points.steps != NO_STEP
    if given.all():
        return points.steps.astype(np.float64)
    return np.where(given, points.steps, np.arange(first, first + len(points))).astype(np.float64)
