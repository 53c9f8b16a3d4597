"""A row of the benchmark table: a measurement, its baseline, the goal and the result."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Union

Number = Union[float, "Sample"]


@dataclass(frozen=True)
class Size:
    """Extent of a benchmark. ``scale`` reduces the number of points, files, runs or seconds."""

    rounds: int
    scale: float = 1.0
    peers: bool = True
    downloads: bool = True

    def scaled(self, count: int, minimum: int = 2) -> int:
        return max(minimum, round(count * self.scale))


FULL = Size(rounds=31)
QUICK = Size(rounds=7)
TINY = Size(rounds=2, scale=0.002, peers=False, downloads=False)


class Sample(list[float]):
    """The measurements of one contender, one per round."""

    @property
    def median(self) -> float:
        return statistics.median(self)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile, a measure of noise."""
        if len(self) < 4:
            return min(self), max(self)
        low, _, high = statistics.quantiles(self, n=4)
        return low, high


@dataclass(frozen=True)
class Goal:
    """``Goal(2.5, relative=True)``: at most 2.5 times the baseline. ``Goal(0.015)``: at most 15 ms."""

    bound: float
    relative: bool = False
    at_least: bool = False

    def is_met(self, ours: float, ratio: float | None) -> bool:
        value = ratio if self.relative else ours
        assert value is not None, "a relative goal needs a baseline"
        return value >= self.bound if self.at_least else value <= self.bound

    def text(self, unit: str) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.bound:g}x" if self.relative else f"{sign} {format_amount(self.bound, unit)}"


@dataclass(frozen=True)
class Row:
    title: str
    ours: Number | None  # None: not measured, for the reason in the notes
    baseline: tuple[str, Number] | None = None  # name and value of the best that the machine can do
    goal: Goal | None = None
    unit: str = "s"  # or "/s"
    peers: dict[str, Number] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        if self.ours is None or self.baseline is None:
            return None
        return median_of(self.ours) / median_of(self.baseline[1])

    @property
    def goal_met(self) -> bool | None:
        if self.ours is None or self.goal is None:
            return None
        return self.goal.is_met(median_of(self.ours), self.ratio)

    @property
    def is_clear(self) -> bool:
        """True if the goal is outside the interquartile range."""
        if self.goal is None or not isinstance(self.ours, Sample):
            return True
        values = self.ours
        if self.goal.relative:
            if (
                self.baseline is None
                or not isinstance(self.baseline[1], Sample)
                or len(self.baseline[1]) != len(self.ours)
            ):
                return True
            values = Sample(ours / baseline for ours, baseline in zip(self.ours, self.baseline[1]))
        low, high = values.quartiles
        return not low < self.goal.bound < high

    @property
    def verdict(self) -> str:
        if self.goal_met is None:
            return ""
        return ("met" if self.goal_met else "not met") if self.is_clear else "inconclusive"


def not_measured(title: str, reason: str) -> Row:
    return Row(title, None, notes=(f"not measured here: {reason}",))


def median_of(number: Number) -> float:
    return number.median if isinstance(number, Sample) else number


def format_amount(number: Number, unit: str = "s") -> str:
    """``29.2 ms``, ``1.1 µs``, ``612,000/s``."""
    value = median_of(number)
    if unit == "/s":
        return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or name == "µs":
            scaled = value * factor
            return f"{scaled:,.0f} {name}" if scaled >= 100 else f"{scaled:.3g} {name}"
    raise AssertionError("unreachable: the last unit accepts every value")


def format_spread(number: Number, unit: str = "s") -> str:
    if not isinstance(number, Sample):
        return ""
    low, high = number.quartiles
    return f"{format_amount(low, unit)} to {format_amount(high, unit)}"
