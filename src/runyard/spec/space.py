"""Search spaces of sweeps: parameter expressions, and the points drawn from them. Deterministic.

An expression is a plain list in the format of SDK v1: ``['uniform', [0.0, 1.0]]``, ``['choice', [[16, 32]]]``.
An option of a choice may be a nested space, a dict: its parameters apply only if that option is drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from statistics import NormalDist
from typing import Any

Space = Mapping[str, Any]
Point = dict[str, Any]

_BISECTIONS = 60  # more would not change a float between 0 and 1


def is_expression(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[0], str)
        and value[0] in _VALUES
        and isinstance(value[1], (list, tuple))
    )


def nested_spaces(expression: Any) -> list[Mapping[str, Any]]:
    """The options of a choice that are nested spaces."""
    return [option for option in expression[1][0] if isinstance(option, Mapping)] if expression[0] == "choice" else []


def option_index(name: str, expression: Any, point: Point) -> int | None:
    """Index of the option of a choice that the point contains, or None."""
    for index, option in enumerate(expression[1][0]):
        if isinstance(option, Mapping):
            if _contains(option, point):
                return index
        elif name in point and point[name] == option and type(point[name]) is type(option):
            return index
    return None


def _contains(space: Space, point: Point) -> bool:
    """Compare all parameters: alternative spaces may share some of them."""
    for name, expression in space.items():
        if not is_expression(expression):
            if name not in point or point[name] != expression:
                return False
        elif expression[0] == "choice":
            if option_index(name, expression, point) is None:
                return False
        elif name not in point:
            return False
    return True


def draw(space: Space, numbers: Callable[[str], float]) -> Point:
    """Draw one point. ``numbers`` returns a number in [0, 1) and is called once for each name that applies."""
    point: Point = {}
    for name, expression in space.items():
        value = value_at(expression, numbers(name)) if is_expression(expression) else expression
        if isinstance(value, Mapping):
            point.update(draw(value, numbers))
        else:
            point[name] = value
    return point


def random_point(space: Space, seed: str) -> Point:
    """Draw a random point; the same seed gives the same point on any machine."""
    generator = random.Random(seed)
    return draw(space, lambda name: generator.random())


def value_at(expression: Any, quantile: float) -> Any:
    """The value at ``quantile`` in [0, 1): the inverse distribution function of the expression."""
    kind, arguments = expression
    return _VALUES[kind](quantile, *arguments)


def quantile_of(expression: Any, value: float) -> float:
    """The smallest quantile with this value or a greater one: the inverse of :func:`value_at` for numbers."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if value_at(expression, middle) < value:
            low = middle
        else:
            high = middle
    return high


def grid_size(space: Space) -> int:
    return math.prod(_options_size(expression) for expression in space.values())


def grid_points(space: Space) -> Iterator[Point]:
    """Yield every combination once; the last parameter changes fastest."""
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


def to_argument(value: Any) -> str:
    """The value as a command-line argument of a script."""
    return value if isinstance(value, str) else str(value)


def _options_size(expression: Any) -> int:
    if not is_expression(expression):
        return 1
    return sum(grid_size(option) if isinstance(option, Mapping) else 1 for option in expression[1][0])


# inverse distribution functions


def _normal(quantile: float, mu: float, sigma: float) -> float:
    if sigma == 0:
        return float(mu)
    return NormalDist(mu, sigma).inv_cdf(min(max(quantile, 1e-12), 1 - 1e-12))


def _uniform(quantile: float, low: float, high: float) -> float:
    return min(low + quantile * (high - low), high)


def _exponent(value: float) -> float:
    return math.exp(min(value, 700.0))


def _rounded(value: float, q: int) -> int:
    return round(value / q) * q


_VALUES: dict[str, Callable[..., Any]] = {
    "choice": lambda quantile, options: options[min(int(quantile * len(options)), len(options) - 1)],
    "randint": lambda quantile, upper: min(int(quantile * upper), upper - 1),
    "uniform": _uniform,
    "loguniform": lambda quantile, low, high: _exponent(_uniform(quantile, low, high)),
    "normal": _normal,
    "lognormal": lambda quantile, mu, sigma: _exponent(_normal(quantile, mu, sigma)),
    "quniform": lambda quantile, low, high, q: _rounded(_uniform(quantile, low, high), q),
    "qloguniform": lambda quantile, low, high, q: _rounded(_exponent(_uniform(quantile, low, high)), q),
    "qnormal": lambda quantile, mu, sigma, q: _rounded(_normal(quantile, mu, sigma), q),
    "qlognormal": lambda quantile, mu, sigma, q: _rounded(_exponent(_normal(quantile, mu, sigma)), q),
}
