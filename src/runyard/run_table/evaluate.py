"""Evaluates a query: each expression yields a boolean array with one element per run."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from runyard.lifecycle.state import TERMINAL, RunState
from runyard.run_table.columns import Columns, candidate_columns
from runyard.run_table.parser import Comparison, Expression, FreeText, Not, Or
from runyard.run_table.string_column import Mask

_ACTIVE = ",".join(state.value for state in RunState if state not in TERMINAL)
_OPERATORS: dict[str, Callable[[npt.NDArray[np.float64], float], Mask]] = {
    ">": lambda numbers, bound: numbers > bound,
    "<": lambda numbers, bound: numbers < bound,
    ">=": lambda numbers, bound: numbers >= bound,
    "<=": lambda numbers, bound: numbers <= bound,
}


def evaluate(columns: Columns, expression: Expression) -> Mask:
    if isinstance(expression, FreeText):
        return np.fromiter((expression.text in text for text in columns.search_texts()), np.bool_, columns.count)
    if isinstance(expression, Not):
        return ~evaluate(columns, expression.operand)
    if isinstance(expression, Comparison):
        mask = np.zeros(columns.count, np.bool_)
        for field in candidate_columns(expression.field):
            mask |= _compare(columns, field, expression)
        return mask
    masks = [evaluate(columns, operand) for operand in expression.operands]
    if isinstance(expression, Or):
        return functools.reduce(np.logical_or, masks)
    return functools.reduce(np.logical_and, masks, np.ones(columns.count, np.bool_))


def _compare(columns: Columns, field: str, comparison: Comparison) -> Mask:
    if comparison.operator in _OPERATORS:
        assert comparison.number is not None
        with np.errstate(invalid="ignore"):
            return _OPERATORS[comparison.operator](columns.numbers(field), comparison.number)
    if comparison.operator == "~":
        needle = comparison.text.lower()
        return columns.texts(field).where(lambda text: needle in text.lower())
    if comparison.operator in ("=", "!="):
        return _equals(columns, field, comparison)
    return _matches_pattern(columns, field, comparison)


def _equals(columns: Columns, field: str, comparison: Comparison) -> Mask:
    """Compare numbers as numbers, else texts; a missing value is neither equal nor different."""
    exists = columns.texts(field).where(lambda text: True)
    equal = columns.texts(field).where(lambda text: text == comparison.text)
    if comparison.number is not None and not comparison.quoted:
        equal |= columns.numbers(field) == comparison.number
    return equal if comparison.operator == "=" else exists & ~equal


def _matches_pattern(columns: Columns, field: str, comparison: Comparison) -> Mask:
    """Evaluate ``:``, which ignores case; ``*`` matches any text, and a comma separates alternatives."""
    text = comparison.text
    if field == "status" and text.lower() == "active":
        text = _ACTIVE
    choices = [text] if comparison.quoted else text.split(",")
    patterns = [
        re.escape(choice) if comparison.quoted else fnmatch.translate(_escape_glob(choice)) for choice in choices
    ]
    matches = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE).fullmatch
    mask = columns.texts(field).where(lambda text: matches(text) is not None)
    if comparison.number is not None and not comparison.quoted:
        mask |= columns.numbers(field) == comparison.number
    return mask


def _escape_glob(text: str) -> str:
    return text.replace("[", "[[]").replace("?", "[?]")
