"""What a row of the bench says: a number of ours, what was measured beside it, the goal and whether it is met."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Union

Number = Union[float, "Sample"]


@dataclass(frozen=True)
class Size:
    """How much is measured. ``scale`` shortens what is counted in points, files, runs or seconds."""

    rounds: int
    scale: float = 1.0
    peers: bool = True
    downloads: bool = True

    def of(self, count: int, least: int = 2) -> int:
        return max(least, round(count * self.scale))


FULL = Size(rounds=31)
QUICK = Size(rounds=7)
TINY = Size(rounds=2, scale=0.002, peers=False, downloads=False)


class Sample(list[float]):
    """What the rounds gave for one contender."""

    @property
    def median(self) -> float:
        return statistics.median(self)

    @property
    def middle_half(self) -> tuple[float, float]:
        """Half of the rounds lie between these two: how noisy the machine was."""
        if len(self) < 4:
            return min(self), max(self)
        low, _, high = statistics.quantiles(self, n=4)
        return low, high


@dataclass(frozen=True)
class Goal:
    """``Goal(2.5, times=True)``: at most 2.5 times what is beside it. ``Goal(0.015)``: at most 15 ms."""

    bound: float
    times: bool = False
    at_least: bool = False

    def is_met(self, ours: float, ratio: float | None) -> bool:
        value = ratio if self.times else ours
        assert value is not None, "a goal in times needs something beside it"
        return value >= self.bound if self.at_least else value <= self.bound

    def text(self, unit: str) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.bound:g}x" if self.times else f"{sign} {amount(self.bound, unit)}"


@dataclass(frozen=True)
class Row:
    what: str
    ours: Number | None  # None: not measured, and a note says why
    beside: tuple[str, Number] | None = None  # what the machine could do at best, by name
    goal: Goal | None = None
    unit: str = "s"  # or "/s"
    peers: dict[str, Number] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        if self.ours is None or self.beside is None:
            return None
        return middle(self.ours) / middle(self.beside[1])

    @property
    def met(self) -> bool | None:
        if self.ours is None or self.goal is None:
            return None
        return self.goal.is_met(middle(self.ours), self.ratio)

    @property
    def is_clear(self) -> bool:
        """Whether the rounds agree: half of them lie around the middle, and the goal does not lie among those."""
        if self.goal is None or not isinstance(self.ours, Sample):
            return True
        values = self.ours
        if self.goal.times:
            if self.beside is None or not isinstance(self.beside[1], Sample) or len(self.beside[1]) != len(self.ours):
                return True
            values = Sample(ours / beside for ours, beside in zip(self.ours, self.beside[1]))
        low, high = values.middle_half
        return not low < self.goal.bound < high

    @property
    def verdict(self) -> str:
        if self.met is None:
            return ""
        return ("met" if self.met else "not met") if self.is_clear else "too noisy to say"


def not_measured(what: str, why: str) -> Row:
    return Row(what, None, notes=(f"not measured here: {why}",))


def middle(number: Number) -> float:
    return number.median if isinstance(number, Sample) else number


def amount(number: Number, unit: str = "s") -> str:
    """``29.2 ms``, ``1.1 µs``, ``612,000/s``."""
    value = middle(number)
    if unit == "/s":
        return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or name == "µs":
            scaled = value * factor
            return f"{scaled:,.0f} {name}" if scaled >= 100 else f"{scaled:.3g} {name}"
    raise AssertionError("the last unit takes everything")


def noise(number: Number, unit: str = "s") -> str:
    if not isinstance(number, Sample):
        return ""
    low, high = number.middle_half
    return f"{amount(low, unit)} to {amount(high, unit)}"
