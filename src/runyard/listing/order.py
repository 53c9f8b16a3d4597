"""The order of a table: by any field, several of them, each in either direction."""

from __future__ import annotations

import numpy as np

from runyard.errors import UserErrorException
from runyard.listing.columns import Columns, Indices
from runyard.listing.fields import FIELDS, GROUPS, SHORT, canonical


def in_order(columns: Columns, chosen: Indices, sort: str) -> Indices:
    """Newest first where the fields are equal; runs that do not have a field come last, whatever the direction."""
    order = chosen[::-1]
    for key in reversed([part for part in sort.split(",") if part.strip()]):
        field, descending = canonical(key.strip().lstrip("-+")), key.strip().startswith("-")
        _check(field)
        order = _sorted(columns, order, field, descending)
    return order


def _sorted(columns: Columns, order: Indices, field: str, descending: bool) -> Indices:
    numbers = columns.numbers(field)[order]
    without = np.isnan(numbers)
    numbered = order[~without]
    values = numbers[~without]
    by_number = numbered[np.argsort(-values if descending else values, kind="stable")]
    if not without.any():
        return by_number
    texts = columns.texts(field)
    rest = order[without].tolist()
    named = sorted((place for place in rest if texts[place]), key=lambda place: texts[place] or "", reverse=descending)
    nameless = [place for place in rest if not texts[place]]
    return np.concatenate([by_number, np.array(named + nameless, by_number.dtype)])


def _check(field: str) -> None:
    group, _, name = field.partition(".")
    if field not in FIELDS and not (group in GROUPS and name):
        raise UserErrorException(
            f"runs cannot be sorted by {field!r}",
            hint=f"by a field ({', '.join(FIELDS)}) or by params.NAME, metrics.NAME, tags.NAME; "
            f"short: {', '.join(sorted(set(SHORT) - set(GROUPS)))}",
        )
