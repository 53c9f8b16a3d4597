"""Command-line arguments of a script."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from typing import Any, Optional

from runyard.errors import ExperimentExecutionException, RunyardException, TrainingException
from runyard.sdk.core import validation


def from_script_params(script_params: Any) -> list[Any]:
    """Convert ``{'--lr': 0.1, '--verbose': '', '--size': [3, 4]}`` to ``--lr 0.1 --verbose --size 3 4``."""
    if script_params is None:
        return []
    if not isinstance(script_params, dict):
        # an AttributeError, because the SDK v1 raised one
        raise AttributeError(
            f"script_params must be a dict such as {{'--lr': 0.1}}, got {validation.describe(script_params)}"
        )
    arguments: list[Any] = []
    for key, value in script_params.items():
        if not (isinstance(key, str) and key) and not hasattr(key, "_as_argument"):
            raise validation.invalid("a key of script_params", key, "text such as '--lr'")
        arguments.append(key)
        is_flag = value is None or (isinstance(value, str) and value == "")
        items = value if isinstance(value, (list, tuple)) else () if is_flag else (value,)
        for item in items:
            _check(f"script_params[{key!r}]", item, TrainingException)
        arguments.extend(items)
    return arguments


def from_list(parameter: str, arguments: Any, error: type[RunyardException]) -> Optional[list[Any]]:
    if arguments is None:
        return None
    if isinstance(arguments, (str, bytes, dict)) or not isinstance(arguments, Iterable):
        hint = f"write {parameter}={arguments.split()!r}" if isinstance(arguments, str) else ""
        raise validation.invalid(parameter, arguments, "a list such as ['--lr', 0.1]", error=error, hint=hint)
    items = list(arguments)
    for item in items:
        _check(parameter, item, error)
    return items


def to_text(arguments: Iterable[Any]) -> tuple[str, ...]:
    """Convert to the text in ``sys.argv``; a data reference or dataset becomes its placeholder."""
    texts = []
    for argument in arguments:
        _check("arguments", argument, ExperimentExecutionException)
        placeholder = getattr(argument, "_as_argument", None)
        texts.append(str(placeholder()) if placeholder else str(argument))
    return tuple(texts)


def _check(parameter: str, item: Any, error: type[RunyardException]) -> None:
    if isinstance(item, str) and "\0" in item:
        raise error(f"{parameter} contains a NUL character, which a command line cannot contain: {item!r}")
    refusal = getattr(item, "_argument_error", None)
    if refusal is not None:
        raise refusal()
    if not isinstance(item, (str, numbers.Number, os.PathLike)) and not hasattr(item, "_as_argument"):
        raise validation.invalid(parameter, item, "text, numbers, True/False or lists of them", error=error)
