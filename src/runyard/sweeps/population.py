"""A population: children of one generation go on from those of the one before, the weakest from a better one's outputs.

Child ``number`` has place ``number % size`` in generation ``number // size``; places of later generations are ranks in
the former one, the best first. A last generation that the budget cuts short thus has the best of its members.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from runyard.spec.space import Point, Space, at, draw, is_expression, place_of_option, random_point
from runyard.spec.sweep import Sampling
from runyard.sweeps.sampler import Sampler

_FACTORS = (0.8, 1.2)


class PopulationSampler(Sampler):
    def __init__(self, sampling: Sampling, most: int) -> None:
        assert sampling.population is not None
        self._sampling, self._about, self._most = sampling, sampling.population, most
        self._points: dict[int, Point] = {}
        self._parents: dict[int, int] = {}
        self._scores: dict[int, float | None] = {}  # of those that ended; None: there is nothing to go on from

    def ready(self, number: int) -> bool:
        return all(member in self._scores for member in self._former(number))

    def propose(self, number: int) -> Point:
        point = self._points[number] = self._proposed(number)
        return point

    def goes_on_from(self, number: int) -> int | None:
        return self._parents.get(number)

    def took(self, number: int, point: Point) -> None:
        self._points[number] = point

    def learn(self, number: int, value: float | None, completed: bool = True) -> None:
        self._scores[number] = value if completed and value is not None and not math.isnan(value) else None

    def stage(self, number: int) -> str:
        size = self._about.size
        return f"generation {number // size + 1} of {-(-self._most // size)}"

    def _proposed(self, number: int) -> Point:
        space, seed = self._sampling.space, f"{self._sampling.seed}/{number}"
        ranked = sorted(self._former(number), key=self._rank)
        strong = [member for member in ranked if self._scores[member] is not None]
        if not strong:  # the first generation, or one after which nobody is left
            return random_point(space, seed)
        size, place = self._about.size, number % self._about.size
        replaced = min(max(1, int(size * self._about.replaced)), size // 2)
        source = random.Random(seed)
        if place < size - replaced and ranked[place] in strong:
            self._parents[number] = ranked[place]
            return _moved(space, self._points[ranked[place]], source, lambda expression, value, place: value)
        better = self._parents[number] = source.choice(strong[:replaced])
        return perturbed(space, self._points[better], source, self._about.resampled)

    def _former(self, number: int) -> range:
        """The members of the generation before; none are before the first."""
        first = number - number % self._about.size
        return range(max(0, first - self._about.size), first)

    def _rank(self, member: int) -> tuple[float, int]:
        score = self._scores[member]
        return (math.inf if score is None else -score, member)


def perturbed(space: Space, point: Point, source: random.Random, resampled: float) -> Point:
    """Near the point; each value has the chance ``resampled`` of being drawn anew. Which of several spaces it is in
    stays: a checkpoint of one model is of no use to another."""

    def near(expression: Any, value: Any, place: int | None) -> Any:
        if source.random() < resampled:
            return at(expression, source.random())
        return _near(expression, value, place, source)

    return _moved(space, point, source, near)


def _moved(space: Space, point: Point, source: random.Random, move: Callable[[Any, Any, int | None], Any]) -> Point:
    """What the point has no value for, or none that its expression could have, is drawn: children that are resumed may
    come from a sweep of another space."""
    found: Point = {}
    for name, expression in space.items():
        if not is_expression(expression):
            found[name] = expression
            continue
        is_choice = expression[0] == "choice"
        place = place_of_option(name, expression, point) if is_choice else None
        if place is not None and isinstance(expression[1][0][place], Mapping):
            found.update(_moved(expression[1][0][place], point, source, move))
        elif place is not None or (not is_choice and _is_number(point.get(name))):
            found[name] = move(expression, point[name], place)
        else:
            found.update(draw({name: expression}, lambda _: source.random()))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _near(expression: Any, value: Any, place: int | None, source: random.Random) -> Any:
    kind, arguments = expression
    if kind == "choice":
        options = arguments[0]
        beside = (place or 0) + source.choice((-1, 1))
        return options[min(max(beside, 0), len(options) - 1)]
    if value == 0 and kind in ("uniform", "normal"):  # times anything it would stay
        return at(expression, source.random())
    factor = source.choice(_FACTORS)
    if kind == "randint":
        return min(max(_stepped(value, factor, 1), 0), arguments[0] - 1)
    if kind in ("qnormal", "qlognormal"):
        return _stepped(value, factor, arguments[-1])
    if kind in ("normal", "lognormal"):
        return value * factor
    low, high = (math.exp(end) for end in arguments[:2]) if "log" in kind else arguments[:2]
    if kind.startswith("q"):
        q = arguments[-1]
        return min(max(_stepped(value, factor, q), math.ceil(low / q) * q), math.floor(high / q) * q)
    return float(min(max(value * factor, low), high))


def _stepped(value: int, factor: float, q: int) -> int:
    """To a multiple of q that is not the same again."""
    moved = round(value * factor / q) * q
    return moved if moved != value else value + (q if factor > 1 else -q)
