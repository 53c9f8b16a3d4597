"""The command line of a script, from what people give for it."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from typing import Any, Optional

from runyard.errors import ExperimentExecutionException, RunyardException, TrainingException
from runyard.sdk.core import validation


def of_script_params(script_params: Any) -> list[Any]:
    """``{'--lr': 0.1, '--verbose': '', '--size': [3, 4]}`` gives ``--lr 0.1 --verbose --size 3 4``, in that order."""
    if script_params is None:
        return []
    if not isinstance(script_params, dict):
        # an AttributeError, since scripts written for the SDK v1 know this mistake by that name
        raise AttributeError(
            f"script_params takes a dict such as {{'--lr': 0.1}}, not {validation.described(script_params)}"
        )
    arguments: list[Any] = []
    for key, value in script_params.items():
        if not (isinstance(key, str) and key) and not hasattr(key, "_as_argument"):
            raise validation.wrong("a key of script_params", key, "text such as '--lr'")
        arguments.append(key)
        spread = value if isinstance(value, (list, tuple)) else () if value is None or _is_empty(value) else (value,)
        for item in spread:
            _check(f"script_params[{key!r}]", item, TrainingException)
        arguments.extend(spread)
    return arguments


def of_list(parameter: str, arguments: Any, error: type[RunyardException]) -> Optional[list[Any]]:
    if arguments is None:
        return None
    if isinstance(arguments, (str, bytes, dict)) or not isinstance(arguments, Iterable):
        hint = f"write {parameter}={arguments.split()!r}" if isinstance(arguments, str) else ""
        raise validation.wrong(parameter, arguments, "a list such as ['--lr', 0.1]", error=error, hint=hint)
    found = list(arguments)
    for item in found:
        _check(parameter, item, error)
    return found


def as_text(arguments: Iterable[Any]) -> tuple[str, ...]:
    """What the script finds in ``sys.argv``; an object of the data room stands as its placeholder."""
    found = []
    for argument in arguments:
        _check("arguments", argument, ExperimentExecutionException)
        hook = getattr(argument, "_as_argument", None)
        found.append(str(hook()) if hook else str(argument))
    return tuple(found)


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and value == ""


def _check(parameter: str, item: Any, error: type[RunyardException]) -> None:
    if isinstance(item, str) and "\0" in item:
        raise error(f"{parameter} holds a NUL character, which no command line can carry: {item!r}")
    refusal = getattr(item, "_not_an_argument", None)
    if refusal is not None:
        raise refusal()
    if not isinstance(item, (str, numbers.Number, os.PathLike)) and not hasattr(item, "_as_argument"):
        raise validation.wrong(parameter, item, "text, numbers, True/False or lists of them", error=error)
