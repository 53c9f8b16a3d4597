"""What a parameter of a sweep may be: plain lists, as the SDK v1 writes them."""

from __future__ import annotations

from typing import Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import SpaceError, check_expression

Expression = list[Any]


def choice(*options: Any) -> Expression:
    """One of several; also of one list, range or array. An option may be a dict: a space of its own."""
    if len(options) == 1 and isinstance(options[0], (list, tuple, range)):
        options = tuple(options[0])
    elif len(options) == 1 and hasattr(options[0], "tolist") and getattr(options[0], "ndim", 1) != 0:
        options = tuple(options[0].tolist())
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
    expression = [kind, [_plain(argument) for argument in arguments]]
    try:
        check_expression(kind, expression)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error), hint=error.hint) from None
    return expression


def _plain(value: Any) -> Any:
    """With Python's own numbers for numpy's, which JSON does not know; numpy itself may not be here."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
