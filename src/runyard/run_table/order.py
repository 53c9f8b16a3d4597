"""The order of a table: by any field, several of them, each in either direction."""

from __future__ import annotations

import numpy as np

from runyard.errors import UserErrorException
from runyard.run_table.columns import Columns, Indices, Numbers
from runyard.run_table.fields import FIELDS, GROUPS, SHORT, canonical


def in_order(columns: Columns, chosen: Indices, sort: str) -> Indices:
    """Newest first where the fields are equal; runs that do not have a field come last, whatever the direction."""
    order = chosen[::-1]
    for key in reversed([part for part in sort.split(",") if part.strip()]):
        field, descending = canonical(key.strip().lstrip("-+")), key.strip().startswith("-")
        _check(field)
        order = _sorted(columns, order, field, descending)
    return order


def _sorted(columns: Columns, order: Indices, field: str, descending: bool) -> Indices:
    """Numbers first, then texts, then those that have neither."""
    numbered, rest = _by(columns.numbers(field), order, descending)
    if not len(rest):
        return numbered
    named, nameless = _by(columns.texts(field).ranks(), rest, descending)
    return np.concatenate([numbered, named, nameless])


def _by(values: Numbers, order: Indices, descending: bool) -> tuple[Indices, Indices]:
    """Those that have a value, sorted by it, and the rest as it stood."""
    wanted = values[order]
    without = np.isnan(wanted)
    kept = wanted[~without]
    return order[~without][np.argsort(-kept if descending else kept, kind="stable")], order[without]


def _check(field: str) -> None:
    group, _, name = field.partition(".")
    if field not in FIELDS and not (group in GROUPS and name):
        raise UserErrorException(
            f"runs cannot be sorted by {field!r}",
            hint=f"by a field ({', '.join(FIELDS)}) or by params.NAME, metrics.NAME, tags.NAME; "
            f"short: {', '.join(sorted(set(SHORT) - set(GROUPS)))}",
        )
