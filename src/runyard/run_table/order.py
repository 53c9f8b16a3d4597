"""Sorts the table by one or several fields, each ascending or descending."""

from __future__ import annotations

import numpy as np

from runyard.errors import UserErrorException
from runyard.run_table.columns import Columns, Indices, Numbers
from runyard.run_table.fields import ALIASES, FIELDS, GROUPS, canonical


def sort_rows(columns: Columns, rows: Indices, sort: str) -> Indices:
    """Sort row indices. Equal runs are sorted newest first; runs without the field come last in both directions."""
    order = rows[::-1]
    for key in reversed([part for part in sort.split(",") if part.strip()]):
        field, descending = canonical(key.strip().lstrip("-+")), key.strip().startswith("-")
        _check(field)
        order = _sorted(columns, order, field, descending)
    return order


def _sorted(columns: Columns, order: Indices, field: str, descending: bool) -> Indices:
    """Numbers come first, then texts, then rows without a value."""
    with_number, rest = _sort_by(columns.numbers(field), order, descending)
    if not len(rest):
        return with_number
    with_text, without = _sort_by(columns.texts(field).ranks(), rest, descending)
    return np.concatenate([with_number, with_text, without])


def _sort_by(values: Numbers, order: Indices, descending: bool) -> tuple[Indices, Indices]:
    """Return the rows with a value, sorted by it, and the other rows in their old order."""
    keys = values[order]
    missing = np.isnan(keys)
    present = keys[~missing]
    return order[~missing][np.argsort(-present if descending else present, kind="stable")], order[missing]


def _check(field: str) -> None:
    group, _, name = field.partition(".")
    if field not in FIELDS and not (group in GROUPS and name):
        raise UserErrorException(
            f"unknown sort field {field!r}",
            hint=f"use a field ({', '.join(FIELDS)}) or params.NAME, metrics.NAME, tags.NAME; "
            f"aliases: {', '.join(sorted(set(ALIASES) - set(GROUPS)))}",
        )
