"""The table by column: the fields of every run at hand, parameters, metrics and tags once somebody asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import orjson

from runyard import clock
from runyard.run_table.fields import FIELDS, GROUPS, canonical
from runyard.run_table.parser import All, AnyOf, Compare, Not, Part
from runyard.run_table.rows import Row, Value, duration_of
from runyard.run_table.string_column import Texts

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
_MOST_LOADED = 100
_KEPT = tuple(name for name in FIELDS if name != "duration_s")


class Columns:
    def __init__(self) -> None:
        self.count = 0
        self.going_on: set[int] = set()  # the places of runs that have not ended
        self._fields: dict[str, list[Value]] = {name: [] for name in _KEPT}
        self._loaded: dict[str, list[Value]] = {}
        self._numbers: dict[str, Numbers] = {}
        self._texts: dict[str, Texts] = {}
        self._searched: Optional[list[str]] = None

    def put(self, place: Optional[int], row: Row) -> None:
        """A new row at the end, or another one in its place."""
        labels = dict(row.labelled()) if self._loaded else {}
        self._searched = None
        if place is None:
            place = self.count
            self.count += 1
            for name, column in self._fields.items():
                column.append(row.fields[name])
            for name, column in self._loaded.items():
                column.append(labels.get(name))
            self._numbers.clear()
            self._texts.clear()
        else:
            for columns, values in ((self._fields, row.fields), (self._loaded, labels)):
                for name, column in columns.items():
                    column[place] = values.get(name)
                    if name in self._numbers:
                        self._numbers[name][place] = _as_number(column[place])
                    if name in self._texts:
                        self._texts[name].put(place, _as_text(column[place]))
        (self.going_on.discard if row.has_ended else self.going_on.add)(place)

    def load(self, heads: Sequence[bytes], wanted: Part, sort: str) -> None:
        names = [*_names_in(wanted), *(canonical(key.strip().lstrip("-+")) for key in sort.split(","))]
        self.load_names(heads, names)

    def load_names(self, heads: Sequence[bytes], names: Iterable[str]) -> None:
        """From the rows themselves, in one pass for all that are missing."""
        missing = [name for name in dict.fromkeys(names) if _is_labelled(name) and name not in self._loaded]
        if not missing:
            return
        if len(self._loaded) + len(missing) > _MOST_LOADED:
            self._loaded.clear()
            self._numbers.clear()
            self._texts.clear()
        parts = [(name.partition(".")[0], name.partition(".")[2], list[Value]()) for name in missing]
        for place, head in enumerate(heads):
            row = parsed(head, place in self.going_on)
            for group, name, column in parts:
                column.append("" if row[group].get(name, "") is None and group == "tags" else row[group].get(name))
        self._loaded.update(zip(missing, (column for _, _, column in parts)))

    def numbers(self, field: str) -> Numbers:
        """NaN where there is none."""
        if field == "duration_s":
            ended = self.numbers("ended_at")
            return np.where(np.isnan(ended), clock.now(), ended) - self.numbers("started_at")
        known = self._numbers.get(field)
        if known is None:
            column = self._column(field)
            known = np.fromiter((_as_number(value) for value in column), np.float64, self.count)
            self._numbers[field] = known
        return known

    def texts(self, field: str) -> Texts:
        known = self._texts.get(field)
        if known is None:
            known = Texts(map(_as_text, self._column(field)), self.count)
            if field != "duration_s":  # it grows by itself
                self._texts[field] = known
        return known

    def searched(self) -> list[str]:
        """What free words are looked for in."""
        if self._searched is None:
            fields = self._fields
            parts = zip(fields["run_id"], fields["name"], fields["experiment"])
            self._searched = [f"{run_id} {name or ''} {experiment}".lower() for run_id, name, experiment in parts]
        return self._searched

    def about(self, place: int) -> tuple[str, str, Optional[str]]:
        fields = self._fields
        return fields["run_id"][place], fields["status"][place], fields["target"][place]

    def duration(self, place: int, now: float) -> Optional[float]:
        return duration_of({name: self._fields[name][place] for name in ("started_at", "ended_at")}, now)

    def _column(self, field: str) -> list[Value]:
        if field == "duration_s":
            return list(self.numbers(field).tolist())
        return self._fields[field] if field in self._fields else self._loaded[field]


def parsed(head: bytes, is_open: bool) -> dict[str, Any]:
    text = head + b"}" if is_open else head
    try:
        row: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        row = json.loads(text)
    return row


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float))


def groups_of(name: str) -> tuple[str, ...]:
    """Where a name may stand: a bare one is a parameter's, a metric's or a tag's."""
    return (name,) if name in FIELDS or _is_labelled(name) else tuple(f"{group}.{name}" for group in GROUPS)


def _is_labelled(name: str) -> bool:
    group, dot, rest = name.partition(".")
    return bool(dot and rest) and group in GROUPS


def _names_in(part: Part) -> list[str]:
    if isinstance(part, Compare):
        return list(groups_of(part.field))
    if isinstance(part, Not):
        return _names_in(part.part)
    if isinstance(part, (All, AnyOf)):
        return [name for inner in part.parts for name in _names_in(inner)]
    return []


def _as_number(value: Value) -> float:
    if type(value) is float:
        return value
    return float(value) if isinstance(value, int) else np.nan


def _as_text(value: Value) -> Optional[str]:
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
