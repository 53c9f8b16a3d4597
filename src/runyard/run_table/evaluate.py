"""Which runs a query means: one array of yes and no for each part of it."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from runyard.lifecycle.state import TERMINAL, RunState
from runyard.run_table.columns import Columns, groups_of
from runyard.run_table.parser import AnyOf, Compare, Not, Part, Words
from runyard.run_table.string_column import Mask

_ACTIVE = ",".join(state.value for state in RunState if state not in TERMINAL)
_COMPARE: dict[str, Callable[[npt.NDArray[np.float64], float], Mask]] = {
    ">": lambda numbers, bound: numbers > bound,
    "<": lambda numbers, bound: numbers < bound,
    ">=": lambda numbers, bound: numbers >= bound,
    "<=": lambda numbers, bound: numbers <= bound,
}


def matching(columns: Columns, part: Part) -> Mask:
    if isinstance(part, Words):
        return np.fromiter((part.text in text for text in columns.searched()), np.bool_, columns.count)
    if isinstance(part, Not):
        return ~matching(columns, part.part)
    if isinstance(part, Compare):
        found = np.zeros(columns.count, np.bool_)
        for field in groups_of(part.field):
            found |= _compared(columns, field, part)
        return found
    inner = [matching(columns, one) for one in part.parts]
    if isinstance(part, AnyOf):
        return functools.reduce(np.logical_or, inner)
    return functools.reduce(np.logical_and, inner, np.ones(columns.count, np.bool_))


def _compared(columns: Columns, field: str, wanted: Compare) -> Mask:
    if wanted.operator in _COMPARE:
        assert wanted.number is not None
        with np.errstate(invalid="ignore"):
            return _COMPARE[wanted.operator](columns.numbers(field), wanted.number)
    if wanted.operator == "~":
        part = wanted.text.lower()
        return columns.texts(field).where(lambda text: part in text.lower())
    if wanted.operator in ("=", "!="):
        return _equal(columns, field, wanted)
    return _means(columns, field, wanted)


def _equal(columns: Columns, field: str, wanted: Compare) -> Mask:
    """As a number where both are one; what is not there is neither equal nor different."""
    there = columns.texts(field).where(lambda text: True)
    same = columns.texts(field).where(lambda text: text == wanted.text)
    if wanted.number is not None and not wanted.quoted:
        same |= columns.numbers(field) == wanted.number
    return same if wanted.operator == "=" else there & ~same


def _means(columns: Columns, field: str, wanted: Compare) -> Mask:
    """``:`` leaves aside capitals, takes ``*`` for anything and a comma for `or`."""
    text = wanted.text
    if field == "status" and text.lower() == "active":
        text = _ACTIVE
    choices = [text] if wanted.quoted else text.split(",")
    patterns = [re.escape(choice) if wanted.quoted else fnmatch.translate(_only_stars(choice)) for choice in choices]
    matches = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE).fullmatch
    found = columns.texts(field).where(lambda text: matches(text) is not None)
    if wanted.number is not None and not wanted.quoted:
        found |= columns.numbers(field) == wanted.number
    return found


def _only_stars(text: str) -> str:
    return text.replace("[", "[[]").replace("?", "[?]")
