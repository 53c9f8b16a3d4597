"""What a sweep may try: expressions of parameters, and the points that are drawn from them. Pure: the same place, the
same value.

An expression is a plain list, as the SDK v1 writes it: ``['uniform', [0.0, 1.0]]``, ``['choice', [[16, 32]]]``.
An option of a choice may be a space of its own, a dict: what it holds takes part only where that option is drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from statistics import NormalDist
from typing import Any

Space = Mapping[str, Any]
Point = dict[str, Any]


def is_expression(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[0], str)
        and value[0] in _VALUES
        and isinstance(value[1], (list, tuple))
    )


def nested(expression: Any) -> list[Mapping[str, Any]]:
    """The options of a choice that are spaces of their own."""
    return [option for option in expression[1][0] if isinstance(option, Mapping)] if expression[0] == "choice" else []


def place_of_option(name: str, expression: Any, point: Point) -> int | None:
    """Which option of a choice the point has; None: none of them."""
    for place, option in enumerate(expression[1][0]):
        if isinstance(option, Mapping):
            if _is_of(option, point):
                return place
        elif name in point and point[name] == option and type(point[name]) is type(option):
            return place
    return None


def _is_of(space: Space, point: Point) -> bool:
    """By all of its parameters: spaces beside each other may have some of them in common."""
    for name, expression in space.items():
        if not is_expression(expression):
            if name not in point or point[name] != expression:
                return False
        elif expression[0] == "choice":
            if place_of_option(name, expression, point) is None:
                return False
        elif name not in point:
            return False
    return True


def draw(space: Space, numbers: Callable[[str], float]) -> Point:
    """One point. ``numbers`` gives for each name a number of [0, 1), and is asked once for each that takes part."""
    point: Point = {}
    for name, expression in space.items():
        value = at(expression, numbers(name)) if is_expression(expression) else expression
        if isinstance(value, Mapping):
            point.update(draw(value, numbers))
        else:
            point[name] = value
    return point


def random_point(space: Space, seed: str) -> Point:
    """The same for the same seed, on any machine."""
    source = random.Random(seed)
    return draw(space, lambda name: source.random())


def at(expression: Any, place: float) -> Any:
    """The value at ``place`` of [0, 1): the expression's distribution, read backwards."""
    kind, arguments = expression
    return _VALUES[kind](place, *arguments)


def grid_size(space: Space) -> int:
    return math.prod(_options_size(expression) for expression in space.values())


def grid_points(space: Space) -> Iterator[Point]:
    """Every combination, each once; the last parameter changes fastest."""
    names = list(space)
    if not names:
        yield {}
        return
    first, rest = names[0], {name: space[name] for name in names[1:]}
    options = space[first][1][0] if is_expression(space[first]) else [space[first]]
    for option in options:
        heads = grid_points(option) if isinstance(option, Mapping) else [{first: option}]
        for head in heads:
            for tail in grid_points(rest):
                yield {**head, **tail}


def as_text(value: Any) -> str:
    """How a script gets it on its command line."""
    return value if isinstance(value, str) else str(value)


def _options_size(expression: Any) -> int:
    if not is_expression(expression):
        return 1
    return sum(grid_size(option) if isinstance(option, Mapping) else 1 for option in expression[1][0])


# values


def _normal(place: float, mu: float, sigma: float) -> float:
    if sigma == 0:
        return float(mu)
    return NormalDist(mu, sigma).inv_cdf(min(max(place, 1e-12), 1 - 1e-12))


def _uniform(place: float, low: float, high: float) -> float:
    return min(low + place * (high - low), high)


def _exponent(value: float) -> float:
    return math.exp(min(value, 700.0))


def _rounded(value: float, q: int) -> int:
    return round(value / q) * q


_VALUES: dict[str, Callable[..., Any]] = {
    "choice": lambda place, options: options[min(int(place * len(options)), len(options) - 1)],
    "randint": lambda place, upper: min(int(place * upper), upper - 1),
    "uniform": _uniform,
    "loguniform": lambda place, low, high: _exponent(_uniform(place, low, high)),
    "normal": _normal,
    "lognormal": lambda place, mu, sigma: _exponent(_normal(place, mu, sigma)),
    "quniform": lambda place, low, high, q: _rounded(_uniform(place, low, high), q),
    "qloguniform": lambda place, low, high, q: _rounded(_exponent(_uniform(place, low, high)), q),
    "qnormal": lambda place, mu, sigma, q: _rounded(_normal(place, mu, sigma), q),
    "qlognormal": lambda place, mu, sigma, q: _rounded(_exponent(_normal(place, mu, sigma)), q),
}
