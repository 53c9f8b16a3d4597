"""What a parameter takes: one error that names the parameter, what it was given and what it takes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any, Optional

from runyard.errors import RunyardException, TrainingException

log = logging.getLogger("runyard")


def wrong(
    parameter: str, given: Any, takes: str, *, error: type[RunyardException] = TrainingException, hint: str = ""
) -> RunyardException:
    return error(f"{parameter} takes {takes}, not {described(given)}", hint=hint, parameter=parameter)


def described(value: Any) -> str:
    """``'2' (str)``: short enough for one line of an error."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '…'} ({type(value).__name__})"


def count(parameter: str, value: Any, *, least: int = 1, error: type[RunyardException] = TrainingException) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(parameter, value, "a whole number", error=error)
    if value < least:
        raise error(f"{parameter} must be at least {least}, not {value}", parameter=parameter)
    return value


def seconds(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[int]:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return count(parameter, value, error=error)


def flag(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> bool:
    if not isinstance(value, bool):
        raise wrong(parameter, value, "True or False", error=error)
    return value


def text(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[str]:
    if value is not None and not isinstance(value, str):
        raise wrong(parameter, value, "text", error=error)
    return value


def path(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> Optional[str]:
    if value is None:
        return None
    try:
        found = os.fspath(value)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise wrong(parameter, value, "a path", error=error)
    return found


def packages(parameter: str, value: Any, *, error: type[RunyardException] = TrainingException) -> list[str]:
    """A list of package requirements; one bare string is the commonest mistake, so its hint shows the list."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        hint = f"write {parameter}=[{value!r}]" if isinstance(value, str) else ""
        raise wrong(parameter, value, "a list of package names", error=error, hint=hint)
    found = list(value)
    for item in found:
        if not isinstance(item, str) or not item.strip():
            raise wrong(parameter, item, "a list of package names, each of them text", error=error)
        if item.lstrip().startswith("-"):
            raise error(
                f"{parameter} takes package names, not the pip option {item!r}",
                hint="set an index or a folder of wheels in your pip configuration; the yard reads it",
                parameter=parameter,
            )
    return [item.strip() for item in found]


def variables(
    parameter: str, value: Any, *, error: type[RunyardException] = TrainingException
) -> Optional[dict[str, str]]:
    """Environment variables: names are text, values become text."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise wrong(parameter, value, "a dict of names and values", error=error)
    for name, item in value.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise wrong(f"a name in {parameter}", name, "text without '='", error=error)
        if not isinstance(item, (str, int, float, os.PathLike)) or "\0" in str(item):
            raise wrong(f"{parameter}[{name!r}]", item, "text or a number", error=error)
    return {name: str(item) for name, item in value.items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'train.py'? `` when one of the known names is close, else nothing."""
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}? " if close else ""
