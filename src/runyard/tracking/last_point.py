"""Determines the last point of a metric: the one with the highest step, then the highest time, then the highest value.

This is MLflow's definition. It does not depend on the order in which points arrive: clients that log in background
threads send them in any order. A point without a step takes the highest step that was logged before it and is the last
one at this moment, so that the points of a metric without steps count in the order in which they were logged.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy as np

from runyard.tracking.blocks import Columns, Floats, Indices
from runyard.wire.points import NO_STEP


class LastPoint(NamedTuple):
    position: int  # its index in the series
    step: int  # NO_STEP if no point has a step
    time: float
    number: float  # the value; NaN if it is not a number


def find_last(before: Optional[LastPoint], points: Columns, first: int) -> LastPoint:
    """The last point of a series after ``points`` were appended.

    Args:
        before: The last point before that; None if there was no point.
        points: The new points.
        first: The index of the first of them in the series.
    """
    steps, begin = points.steps, 0
    if int(steps.min()) == NO_STEP:
        begin = int(np.flatnonzero(steps == NO_STEP)[-1]) + 1
        step = max(int(steps[:begin].max()), NO_STEP if before is None else before.step)
        before = _last_point(points, begin - 1, first)._replace(step=step)
        if begin == len(points):
            return before
    candidates = begin + np.flatnonzero(steps[begin:] == steps[begin:].max())
    if len(candidates) > 1:
        candidates = candidates[_highest(points.times[candidates])]
    if len(candidates) > 1:
        candidates = candidates[_highest(points.take(candidates).numbers())]
    newest = _last_point(points, int(candidates[-1]), first)
    return newest if before is None or _key(newest) >= _key(before) else before


def _last_point(points: Columns, index: int, first: int) -> LastPoint:
    number = float(points.take(slice(index, index + 1)).numbers()[0])
    return LastPoint(first + index, int(points.steps[index]), float(points.times[index]), number)


def _highest(numbers: Floats) -> Indices:
    numbers = np.where(np.isnan(numbers), -np.inf, numbers)
    return np.flatnonzero(numbers == numbers.max())


def _key(point: LastPoint) -> tuple[int, float, float]:
    """NaN is lower than every number."""
    return point.step, _comparable(point.time), _comparable(point.number)


def _comparable(number: float) -> float:
    return number if number == number else -np.inf
