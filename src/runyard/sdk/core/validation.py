"""Checks of parameter values. Every error names the parameter, the expected value and the value it got."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any, Optional

from runyard.errors import RunyardException, TrainingException
from runyard.sdk.core.secrets import Secret

log = logging.getLogger("runyard")


def invalid(
    parameter: str, value: Any, expected: str, *, error: type[RunyardException] = TrainingException, hint: str = ""
) -> RunyardException:
    """Return the error to raise for a parameter with an invalid value."""
    return error(f"{parameter} must be {expected}, got {describe(value)}", hint=hint, parameter=parameter)


def describe(value: Any) -> str:
    """``'2' (str)``: short enough for one line of an error."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '…'} ({type(value).__name__})"


def count(parameter: str, value: Any, *, minimum: int = 1, error: type[RunyardException] = TrainingException) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(parameter, value, "a whole number", error=error)
    if value < minimum:
        raise error(f"{parameter} must be at least {minimum}, got {value}", parameter=parameter)
    return value


def seconds(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[int]:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return count(parameter, value, error=error)


def flag(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> bool:
    if not isinstance(value, bool):
        raise invalid(parameter, value, "True or False", error=error)
    return value


def text(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[str]:
    if value is not None and not isinstance(value, str):
        raise invalid(parameter, value, "text", error=error)
    return value


def path(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[str]:
    if value is None:
        return None
    try:
        path_text = os.fspath(value)
    except TypeError:
        path_text = None
    if not isinstance(path_text, str):
        raise invalid(parameter, value, "a path", error=error)
    return path_text


def packages(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> list[str]:
    """Check a list of package requirements. A single string is the most common mistake, so the hint shows the list."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        hint = f"write {parameter}=[{value!r}]" if isinstance(value, str) else ""
        raise invalid(parameter, value, "a list of package names", error=error, hint=hint)
    names = list(value)
    for item in names:
        if not isinstance(item, str) or not item.strip():
            raise invalid(parameter, item, "a list of package names, each of them text", error=error)
        if item.lstrip().startswith("-"):
            raise error(
                f"{parameter} must be package names, got the pip option {item!r}",
                hint="set an index or a folder of wheels in your pip configuration; the yard reads it",
                parameter=parameter,
            )
    return [item.strip() for item in names]


def variables(
    parameter: str, value: Any, *, error: type[RunyardException] = TrainingException
) -> Optional[dict[str, Any]]:
    """Check environment variables and convert their values to text; references to secrets stay as they are."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise invalid(parameter, value, "a dict of names and values", error=error)
    for name, item in value.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise invalid(f"a name in {parameter}", name, "text without '='", error=error)
        if not isinstance(item, (str, int, float, os.PathLike, Secret)) or "\0" in str(item):
            raise invalid(f"{parameter}[{name!r}]", item, "text, a number or a Secret", error=error)
    return {name: item if isinstance(item, Secret) else str(item) for name, item in value.items()}


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean 'train.py'? `` when one of the names is similar, else an empty string."""
    import difflib

    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]!r}? " if close else ""
