"""Validation of search spaces, with the same messages in the SDK, on the command line and in the yard."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.space import is_expression, nested_spaces
from runyard.spec.sweep import GRID


class SpaceError(ValueError):
    """An invalid search space. The message names the parameter; ``hint`` shows the correct form."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


EXAMPLES = {
    "choice": "choice(16, 32), choice('a', 'b')",
    "randint": "randint(5)",
    "uniform": "uniform(0, 1)",
    "loguniform": "loguniform(-6, -1)",
    "normal": "normal(0, 1)",
    "lognormal": "lognormal(0, 1)",
    "quniform": "quniform(0, 100, 5)",
    "qloguniform": "qloguniform(0, 7, 1)",
    "qnormal": "qnormal(100, 20, 5)",
    "qlognormal": "qlognormal(3, 1, 5)",
}


MAX_COUNT = 2**31 - 1  # limit of the sampling libraries for any count
MAX_SOBOL_COUNT = 2**30
MAX_SEED = 2**32 - 1


def check_space(space: Any, sampling: str = "") -> None:
    """Raise SpaceError if the space is invalid, or if the sampling (by name) does not support an expression in it."""
    if not isinstance(space, Mapping) or not space:
        raise SpaceError(f"parameter_space must be a dict of parameters and expressions, got {space!r}")
    _check_names("parameter_space", space)
    for name, expression in space.items():
        check_expression(name, expression, sampling)


def check_expression(name: str, expression: Any, sampling: str = "") -> None:
    if not is_expression(expression):
        raise SpaceError(f"{name!r}: {expression!r} is not an expression such as uniform(0, 1) or choice(1, 2)")
    kind, arguments = expression
    if sampling == GRID and kind != "choice":
        raise SpaceError(
            f"{name!r}: a grid does not support {kind}, only choice",
            "list the values to try: choice(0.1, 0.2); the other samplings support every expression",
        )
    try:
        _CHECKS[kind](*arguments)
    except SpaceError as error:
        raise SpaceError(f"{name!r}: {error}", f"for example {EXAMPLES[kind]}") from None
    except TypeError:
        raise SpaceError(
            f"{name!r}: {kind} does not accept {len(arguments)} arguments: {arguments!r}",
            f"for example {EXAMPLES[kind]}",
        ) from None
    for option in nested_spaces(expression):
        _check_option(name, option, sampling)


def validate_count(name: str, value: Any, minimum: int = 1, maximum: int = MAX_COUNT) -> int:
    """Return ``value`` if it is an integer between ``minimum`` and ``maximum``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise HyperDriveConfigException(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    if value > maximum:
        raise HyperDriveConfigException(f"{name} must be at most {maximum}, got {value}")
    return value


def validate_not_negative(name: str, value: Any) -> None:
    try:
        _number(value, name)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error)) from None
    if value < 0:
        raise HyperDriveConfigException(f"{name} must not be negative, got {value!r}")


# checks: raise SpaceError


def _check_names(where: str, space: Mapping[Any, Any]) -> None:
    names: dict[str, str] = {}
    for name in space:
        if not isinstance(name, str) or not name.strip("-"):
            raise SpaceError(f"{name!r} in {where} is not a valid parameter name")
        bare = name.lstrip("-")
        if bare in names:  # a script would get the argument twice and use the last one
            raise SpaceError(f"{names[bare]!r} and {name!r} in {where} are the same parameter", "keep one of them")
        names[bare] = name


def _check_option(name: str, option: Mapping[Any, Any], sampling: str) -> None:
    if not option:
        raise SpaceError(f"{name!r}: an option that is a space must have at least one parameter")
    _check_names(f"an option of {name!r}", option)
    for inner, value in option.items():
        if is_expression(value):
            check_expression(inner, value, sampling)
        elif isinstance(value, Mapping) or not _is_plain(value):
            raise SpaceError(
                f"{inner!r} in an option of {name!r} must be an expression or a plain value, got {value!r}",
                "for example choice({'--model': 'tree', '--depth': choice(2, 4)}, {'--model': 'net'})",
            )


def _choice(options: Any) -> None:
    if not isinstance(options, (list, tuple)) or not options:
        raise SpaceError("choice needs at least one option")
    for option in options:
        if is_expression(option):  # a script would get its repr
            raise SpaceError(
                f"an option cannot be {option[0]}(…); use a nested space: choice({{'--x': {option[0]}(…)}})"
            )
        if not isinstance(option, Mapping) and not _is_plain(option):
            raise SpaceError(
                f"an option must be a number, a string, a boolean, a list of these or a nested space, "
                f"got {option!r} ({type(option).__name__})"
            )
    kinds = {_family(option) for option in options}
    if len(kinds) > 1:
        raise SpaceError(f"choice cannot mix {' and '.join(sorted(kinds))}: {list(options)!r}")


def _family(option: Any) -> str:
    if isinstance(option, (bool, int, float)):
        return "numbers"
    if isinstance(option, str):
        return "strings"
    return "spaces" if isinstance(option, Mapping) else f"{type(option).__name__}s"


def _is_plain(value: Any) -> bool:
    """True if the value survives conversion to JSON and back."""
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(item) for name, item in value.items())
    if isinstance(value, float):
        return not math.isnan(value)
    return value is None or isinstance(value, (int, str))


def _number(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpaceError(f"{name} must be a number, got {value!r}")
    _fits(value, name)
    if not math.isfinite(value):
        raise SpaceError(f"{name} must be a number, got {value!r}")


def _fits(value: float, name: str) -> None:
    try:
        float(value)
    except OverflowError:
        raise SpaceError(f"{name} exceeds the range of a float") from None


def _range(low: Any, high: Any) -> None:
    _number(low, "min_value")
    _number(high, "max_value")
    if not low < high:
        raise SpaceError(f"min_value must be less than max_value, got {low!r} and {high!r}")
    if math.isinf(float(high) - float(low)):
        raise SpaceError(f"the range from {low!r} to {high!r} exceeds the range of a float")


def _log_range(low: Any, high: Any) -> None:
    _range(low, high)
    if high > 700:
        raise SpaceError(f"max_value is an exponent: exp({high!r}) exceeds the range of a float")


def _normal(mu: Any, sigma: Any) -> None:
    _number(mu, "mu")
    _number(sigma, "sigma")
    if sigma < 0:
        raise SpaceError(f"sigma must not be negative, got {sigma!r}")


def _upper(upper: Any) -> None:
    _at_least_one(upper, "upper")


def _at_least_one(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpaceError(f"{name} must be a whole number of at least 1, got {value!r}")
    _fits(value, name)


def _with_step(check: Callable[[Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    def check_with_step(first: Any, second: Any, q: Any) -> None:
        check(first, second)
        _at_least_one(q, "q")

    return check_with_step


def _steps_between(low: Any, high: Any, q: Any) -> None:
    _with_step(_range)(low, high, q)
    if math.floor(high / q) < math.ceil(low / q):  # every value would be out of range
        raise SpaceError(f"no multiple of {q!r} is between {low!r} and {high!r}")


_CHECKS: dict[str, Callable[..., None]] = {
    "choice": _choice,
    "randint": _upper,
    "uniform": _range,
    "loguniform": _log_range,
    "normal": _normal,
    "lognormal": _normal,
    "quniform": _steps_between,
    "qloguniform": _with_step(_log_range),
    "qnormal": _with_step(_normal),
    "qlognormal": _with_step(_normal),
}
