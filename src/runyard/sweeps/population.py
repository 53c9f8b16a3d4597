"""Population-based training: each generation resumes from the previous one, the weakest members from a better member.

Child ``number`` is member ``number % size`` of generation ``number // size``. In later generations the member index is
the rank in the previous generation, best first, so a last generation cut short by the budget keeps the best members.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from runyard.spec.space import Point, Space, draw, is_expression, option_index, random_point, value_at
from runyard.spec.sweep import Sampling
from runyard.sweeps.sampler import Sampler

_FACTORS = (0.8, 1.2)


class PopulationSampler(Sampler):
    def __init__(self, sampling: Sampling, max_children: int) -> None:
        assert sampling.population is not None
        self._sampling, self._population, self._max_children = sampling, sampling.population, max_children
        self._points: dict[int, Point] = {}
        self._parents: dict[int, int] = {}
        self._scores: dict[int, float | None] = {}  # of children that ended; None: no usable outputs

    def ready(self, number: int) -> bool:
        return all(member in self._scores for member in self._previous_generation(number))

    def ask(self, number: int) -> Point:
        point = self._points[number] = self._next_point(number)
        return point

    def parent(self, number: int) -> int | None:
        return self._parents.get(number)

    def restore(self, number: int, point: Point) -> None:
        self._points[number] = point

    def tell(self, number: int, value: float | None, completed: bool = True) -> None:
        self._scores[number] = value if completed and value is not None and not math.isnan(value) else None

    def stage(self, number: int) -> str:
        size = self._population.size
        return f"generation {number // size + 1} of {-(-self._max_children // size)}"

    def _next_point(self, number: int) -> Point:
        space, seed = self._sampling.space, f"{self._sampling.seed}/{number}"
        ranked = sorted(self._previous_generation(number), key=self._rank)
        strong = [member for member in ranked if self._scores[member] is not None]
        if not strong:  # the first generation, or no member of the previous one completed
            return random_point(space, seed)
        size, rank = self._population.size, number % self._population.size
        replaced = min(max(1, int(size * self._population.replaced)), size // 2)
        rng = random.Random(seed)
        if rank < size - replaced and ranked[rank] in strong:
            self._parents[number] = ranked[rank]
            return _transform(space, self._points[ranked[rank]], rng, lambda expression, value, index: value)
        better = self._parents[number] = rng.choice(strong[:replaced])
        return perturb(space, self._points[better], rng, self._population.resampled)

    def _previous_generation(self, number: int) -> range:
        """Members of the generation before that of child ``number``; empty for the first one."""
        first = number - number % self._population.size
        return range(max(0, first - self._population.size), first)

    def _rank(self, member: int) -> tuple[float, int]:
        score = self._scores[member]
        return (math.inf if score is None else -score, member)


def perturb(space: Space, point: Point, rng: random.Random, resampled: float) -> Point:
    """A point close to ``point``; each value is redrawn with probability ``resampled``.

    The choice between nested spaces does not change: a checkpoint of one model is useless to another.
    """

    def change(expression: Any, value: Any, index: int | None) -> Any:
        if rng.random() < resampled:
            return value_at(expression, rng.random())
        return _nearby(expression, value, index, rng)

    return _transform(space, point, rng, change)


def _transform(space: Space, point: Point, rng: random.Random, change: Callable[[Any, Any, int | None], Any]) -> Point:
    """Apply ``change`` to every value of the point; draw missing and impossible values.

    Resumed children may come from a sweep of another space.
    """
    result: Point = {}
    for name, expression in space.items():
        if not is_expression(expression):
            result[name] = expression
            continue
        is_choice = expression[0] == "choice"
        index = option_index(name, expression, point) if is_choice else None
        if index is not None and isinstance(expression[1][0][index], Mapping):
            result.update(_transform(expression[1][0][index], point, rng, change))
        elif index is not None or (not is_choice and _is_number(point.get(name))):
            result[name] = change(expression, point[name], index)
        else:
            result.update(draw({name: expression}, lambda _: rng.random()))
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _nearby(expression: Any, value: Any, index: int | None, rng: random.Random) -> Any:
    kind, arguments = expression
    if kind == "choice":
        options = arguments[0]
        neighbor = (index or 0) + rng.choice((-1, 1))
        return options[min(max(neighbor, 0), len(options) - 1)]
    if value == 0 and kind in ("uniform", "normal"):  # a factor would not change it
        return value_at(expression, rng.random())
    factor = rng.choice(_FACTORS)
    if kind == "randint":
        return min(max(_scale_to_step(value, factor, 1), 0), arguments[0] - 1)
    if kind in ("qnormal", "qlognormal"):
        return _scale_to_step(value, factor, arguments[-1])
    if kind in ("normal", "lognormal"):
        return value * factor
    low, high = (math.exp(end) for end in arguments[:2]) if "log" in kind else arguments[:2]
    if kind.startswith("q"):
        q = arguments[-1]
        return min(max(_scale_to_step(value, factor, q), math.ceil(low / q) * q), math.floor(high / q) * q)
    return float(min(max(value * factor, low), high))


def _scale_to_step(value: int, factor: float, q: int) -> int:
    """The scaled value as a multiple of q, always different from the old one."""
    scaled = round(value * factor / q) * q
    return scaled if scaled != value else value + (q if factor > 1 else -q)
