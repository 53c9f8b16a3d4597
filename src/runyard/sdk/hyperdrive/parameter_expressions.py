"""Parameter expressions of a search space: plain lists, as in the SDK v1."""

from __future__ import annotations

from typing import Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import SpaceError, check_expression

Expression = list[Any]


def choice(*options: Any) -> Expression:
    """One of the options, which may also be one list, range or array. A dict as an option is a nested space."""
    if len(options) == 1 and isinstance(options[0], (list, tuple, range)):
        options = tuple(options[0])
    elif len(options) == 1 and hasattr(options[0], "tolist") and getattr(options[0], "ndim", 1) != 0:
        options = tuple(options[0].tolist())
    return _expression("choice", list(options))


def randint(upper: int) -> Expression:
    """An integer from 0 to ``upper`` - 1."""
    return _expression("randint", upper)


def uniform(min_value: float, max_value: float) -> Expression:
    """A number between ``min_value`` and ``max_value``, uniformly distributed."""
    return _expression("uniform", min_value, max_value)


def quniform(min_value: float, max_value: float, q: int) -> Expression:
    """Like :func:`uniform`, rounded to multiples of ``q``."""
    return _expression("quniform", min_value, max_value, q)


def loguniform(min_value: float, max_value: float) -> Expression:
    """exp of a uniform number: ``loguniform(-6, -1)`` lies between exp(-6) and exp(-1)."""
    return _expression("loguniform", min_value, max_value)


def qloguniform(min_value: float, max_value: float, q: int) -> Expression:
    """Like :func:`loguniform`, rounded to multiples of ``q``."""
    return _expression("qloguniform", min_value, max_value, q)


def normal(mu: float, sigma: float) -> Expression:
    """A normally distributed number."""
    return _expression("normal", mu, sigma)


def qnormal(mu: float, sigma: float, q: int) -> Expression:
    """Like :func:`normal`, rounded to multiples of ``q``."""
    return _expression("qnormal", mu, sigma, q)


def lognormal(mu: float, sigma: float) -> Expression:
    """exp of a normally distributed number."""
    return _expression("lognormal", mu, sigma)


def qlognormal(mu: float, sigma: float, q: int) -> Expression:
    """Like :func:`lognormal`, rounded to multiples of ``q``."""
    return _expression("qlognormal", mu, sigma, q)


def _expression(kind: str, *arguments: Any) -> Expression:
    expression = [kind, [_to_jsonable(argument) for argument in arguments]]
    try:
        check_expression(kind, expression)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    return expression


def _to_jsonable(value: Any) -> Any:
    """Convert numpy scalars, which JSON does not support, without importing numpy."""
    if isinstance(value, dict):
        return {name: _to_jsonable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_jsonable(item) for item in value]
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
