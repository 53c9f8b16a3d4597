"""What a parameter of a sweep may be: plain lists, as the SDK v1 writes them."""

from __future__ import annotations

from typing import Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.space import SpaceError, check_expression

Expression = list[Any]


def choice(*options: Any) -> Expression:
    """One of several; also of one list or range. An option may be a dict: a space of its own."""
    if len(options) == 1 and isinstance(options[0], (list, tuple, range)):
        options = tuple(options[0])
    return _checked("choice", list(options))


def randint(upper: int) -> Expression:
    """A whole number from 0 to ``upper`` - 1."""
    return _checked("randint", upper)


def uniform(min_value: float, max_value: float) -> Expression:
    return _checked("uniform", min_value, max_value)


def quniform(min_value: float, max_value: float, q: int) -> Expression:
    """Like uniform, rounded to multiples of ``q``."""
    return _checked("quniform", min_value, max_value, q)


def loguniform(min_value: float, max_value: float) -> Expression:
    """exp of a uniform: ``loguniform(-6, -1)`` lies between exp(-6) and exp(-1)."""
    return _checked("loguniform", min_value, max_value)


def qloguniform(min_value: float, max_value: float, q: int) -> Expression:
    return _checked("qloguniform", min_value, max_value, q)


def normal(mu: float, sigma: float) -> Expression:
    return _checked("normal", mu, sigma)


def qnormal(mu: float, sigma: float, q: int) -> Expression:
    return _checked("qnormal", mu, sigma, q)


def lognormal(mu: float, sigma: float) -> Expression:
    return _checked("lognormal", mu, sigma)


def qlognormal(mu: float, sigma: float, q: int) -> Expression:
    return _checked("qlognormal", mu, sigma, q)


def _checked(kind: str, *arguments: Any) -> Expression:
    expression = [kind, list(arguments)]
    try:
        check_expression(kind, expression)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    return expression
