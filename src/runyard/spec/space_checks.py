"""What cannot be tried is refused where it is said, in the SDK, on the command line and by the yard alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.space import is_expression, nested
from runyard.spec.sweep import BAYESIAN, GRID


class SpaceError(ValueError):
    """Its text names the parameter and what is wrong with it; ``hint`` says how it is written."""

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


# of the samplings that cannot use all of them
EXPRESSIONS_OF = {GRID: ("choice",), BAYESIAN: ("choice", "uniform", "quniform")}

MOST = 2**31 - 1  # of anything that is counted: the libraries that are asked take no more
MOST_OF_SOBOL = 2**30
MOST_SEED = 2**32 - 1


def check_space(space: Any, sampling: str = "") -> None:
    """``sampling``: by its name; some can use a few expressions only, and inside of an option no others either."""
    if not isinstance(space, Mapping) or not space:
        raise SpaceError(f"parameter_space must be a dict of parameters and expressions, not {space!r}")
    _check_names("parameter_space", space)
    for name, expression in space.items():
        check_expression(name, expression, sampling)


def check_expression(name: str, expression: Any, sampling: str = "") -> None:
    if not is_expression(expression):
        raise SpaceError(f"{name!r}: {expression!r} is not an expression such as uniform(0, 1) or choice(1, 2)")
    kind, arguments = expression
    allowed = EXPRESSIONS_OF.get(sampling, ())
    if allowed and kind not in allowed:
        named = "" if "uniform" in allowed else "; name the values to try: choice(0.1, 0.2)"
        raise SpaceError(
            f"{name!r}: this sampling cannot use {kind}, only {', '.join(allowed)}",
            f"random sampling takes every expression{named}",
        )
    try:
        _CHECKS[kind](*arguments)
        if sampling == BAYESIAN and kind == "quniform":
            _whole_ends(*arguments)
    except SpaceError as error:
        raise SpaceError(f"{name!r}: {error}", f"for example {EXAMPLES[kind]}") from None
    except TypeError:
        raise SpaceError(
            f"{name!r}: {kind} does not take {len(arguments)} values: {arguments!r}", f"for example {EXAMPLES[kind]}"
        ) from None
    for option in nested(expression):
        _check_option(name, option, sampling)


def whole(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """The value, when it is a count that every part of a sweep can deal with."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise HyperDriveConfigException(f"{name} must be a whole number of at least {least}, not {value!r}")
    if value > most:
        raise HyperDriveConfigException(f"{name} can be at most {most}")
    return value


def not_negative(name: str, value: Any) -> None:
    try:
        _number(value, name)
    except SpaceError as error:
        raise HyperDriveConfigException(str(error)) from None
    if value < 0:
        raise HyperDriveConfigException(f"{name} must be a number of at least 0, not {value!r}")


# checks: raise SpaceError


def _check_names(where: str, space: Mapping[Any, Any]) -> None:
    seen: dict[str, str] = {}
    for name in space:
        if not isinstance(name, str) or not name.strip("-"):
            raise SpaceError(f"{name!r} in {where} cannot be the name of a parameter")
        bare = name.lstrip("-")
        if bare in seen:  # a script would get the argument twice, and believe the last
            raise SpaceError(f"{seen[bare]!r} and {name!r} in {where} are the same parameter", "keep one of them")
        seen[bare] = name


def _check_option(name: str, option: Mapping[Any, Any], sampling: str) -> None:
    if not option:
        raise SpaceError(f"{name!r}: an option that is a space must have at least one parameter")
    _check_names(f"an option of {name!r}", option)
    for inner, value in option.items():
        if is_expression(value):
            check_expression(inner, value, sampling)
        elif isinstance(value, Mapping) or not _is_plain(value):
            raise SpaceError(
                f"{inner!r} in an option of {name!r} must be an expression or a plain value, not {value!r}",
                "for example choice({'--model': 'tree', '--depth': choice(2, 4)}, {'--model': 'net'})",
            )


def _choice(options: Any) -> None:
    if not isinstance(options, (list, tuple)) or not options:
        raise SpaceError("choice needs at least one option")
    for option in options:
        if is_expression(option):  # a script would get its text
            raise SpaceError(
                f"an option cannot be {option[0]}(…) by itself, only a space: choice({{'--x': {option[0]}(…)}})"
            )
        if not isinstance(option, Mapping) and not _is_plain(option):
            raise SpaceError(
                f"an option must be a number, a text, true or false, a list of such or a space, "
                f"not {option!r} ({type(option).__name__})"
            )
    kinds = {_family(option) for option in options}
    if len(kinds) > 1:
        raise SpaceError(f"choice cannot mix {' and '.join(sorted(kinds))}: {list(options)!r}")


def _family(option: Any) -> str:
    if isinstance(option, bool):
        return "numbers"
    if isinstance(option, (int, float)):
        return "numbers"
    if isinstance(option, str):
        return "texts"
    return "spaces" if isinstance(option, Mapping) else f"{type(option).__name__}s"


def _is_plain(value: Any) -> bool:
    """What goes to the yard as JSON and comes back the same."""
    if isinstance(value, (list, tuple)):
        return all(_is_plain(one) for one in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(one) for name, one in value.items())
    if isinstance(value, float):
        return not math.isnan(value)
    return value is None or isinstance(value, (int, str))


def _number(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpaceError(f"{what} must be a number, not {value!r}")
    _fits(value, what)
    if not math.isfinite(value):
        raise SpaceError(f"{what} must be a number, not {value!r}")


def _fits(value: float, what: str) -> None:
    try:
        float(value)
    except OverflowError:
        raise SpaceError(f"{what} is more than a number can be") from None


def _range(low: Any, high: Any) -> None:
    _number(low, "min_value")
    _number(high, "max_value")
    if not low < high:
        raise SpaceError(f"min_value must be less than max_value, not {low!r} and {high!r}")
    if math.isinf(float(high) - float(low)):
        raise SpaceError(f"from {low!r} to {high!r} is further than a number can be")


def _log_range(low: Any, high: Any) -> None:
    _range(low, high)
    if high > 700:
        raise SpaceError(f"max_value is an exponent: exp({high!r}) is more than a number can be")


def _bell(mu: Any, sigma: Any) -> None:
    _number(mu, "mu")
    _number(sigma, "sigma")
    if sigma < 0:
        raise SpaceError(f"sigma must not be negative, not {sigma!r}")


def _step(q: Any) -> None:
    _at_least_one(q, "q")


def _upper(upper: Any) -> None:
    _at_least_one(upper, "upper")


def _at_least_one(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpaceError(f"{what} must be a whole number of at least 1, not {value!r}")
    _fits(value, what)


def _with_step(check: Callable[[Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    def both(first: Any, second: Any, q: Any) -> None:
        check(first, second)
        _step(q)

    return both


def _steps_between(low: Any, high: Any, q: Any) -> None:
    _with_step(_range)(low, high, q)
    if math.floor(high / q) < math.ceil(low / q):  # every value would lie outside
        raise SpaceError(f"no multiple of {q!r} is between {low!r} and {high!r}")


def _whole_ends(low: Any, high: Any, q: Any) -> None:
    if int(low) != low or int(high) != high:
        raise SpaceError(f"quniform must have whole numbers for Bayesian sampling, not {low!r} and {high!r}")


_CHECKS: dict[str, Callable[..., None]] = {
    "choice": _choice,
    "randint": _upper,
    "uniform": _range,
    "loguniform": _log_range,
    "normal": _bell,
    "lognormal": _bell,
    "quniform": _steps_between,
    "qloguniform": _with_step(_log_range),
    "qnormal": _with_step(_bell),
    "qlognormal": _with_step(_bell),
}
