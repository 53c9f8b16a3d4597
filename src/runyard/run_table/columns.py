"""Columns of the table: fields are always in memory; parameters, metrics and tags are loaded on first use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import orjson

from runyard import clock
from runyard.run_table.fields import FIELDS, GROUPS, canonical
from runyard.run_table.parser import And, Comparison, Expression, Not, Or
from runyard.run_table.rows import Row, Value, run_duration
from runyard.run_table.string_column import StringColumn

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
_MAX_LOADED = 100
_STORED_FIELDS = tuple(name for name in FIELDS if name != "duration_s")


class Columns:
    def __init__(self) -> None:
        self.count = 0
        self.live_rows: set[int] = set()  # indices of runs that have not ended
        self._fields: dict[str, list[Value]] = {name: [] for name in _STORED_FIELDS}
        self._labels: dict[str, list[Value]] = {}
        self._numbers: dict[str, Numbers] = {}
        self._texts: dict[str, StringColumn] = {}
        self._search_texts: Optional[list[str]] = None

    def put(self, index: Optional[int], row: Row) -> None:
        """Append a row, or replace the one at ``index``."""
        labels = dict(row.labels()) if self._labels else {}
        self._search_texts = None
        if index is None:
            index = self.count
            self.count += 1
            for name, column in self._fields.items():
                column.append(row.fields[name])
            for name, column in self._labels.items():
                column.append(labels.get(name))
            self._numbers.clear()
            self._texts.clear()
        else:
            for columns, values in ((self._fields, row.fields), (self._labels, labels)):
                for name, column in columns.items():
                    column[index] = values.get(name)
                    if name in self._numbers:
                        self._numbers[name][index] = _as_number(column[index])
                    if name in self._texts:
                        self._texts[name].put(index, _as_text(column[index]))
        (self.live_rows.discard if row.has_ended else self.live_rows.add)(index)

    def load(self, heads: Sequence[bytes], query: Expression, sort: str) -> None:
        names = [*_field_names(query), *(canonical(key.strip().lstrip("-+")) for key in sort.split(","))]
        self.load_columns(heads, names)

    def load_columns(self, heads: Sequence[bytes], names: Iterable[str]) -> None:
        """Load the columns that are missing from the encoded rows, in one pass."""
        missing = [name for name in dict.fromkeys(names) if _is_label(name) and name not in self._labels]
        if not missing:
            return
        if len(self._labels) + len(missing) > _MAX_LOADED:
            self._labels.clear()
            self._numbers.clear()
            self._texts.clear()
        columns = [(name.partition(".")[0], name.partition(".")[2], list[Value]()) for name in missing]
        for index, head in enumerate(heads):
            row = decode_head(head, index in self.live_rows)
            for group, name, column in columns:
                column.append("" if row[group].get(name, "") is None and group == "tags" else row[group].get(name))
        self._labels.update(zip(missing, (column for _, _, column in columns)))

    def numbers(self, field: str) -> Numbers:
        """The numbers of a column; NaN for rows without one."""
        if field == "duration_s":
            ended = self.numbers("ended_at")
            return np.where(np.isnan(ended), clock.now(), ended) - self.numbers("started_at")
        numbers = self._numbers.get(field)
        if numbers is None:
            column = self._column(field)
            numbers = np.fromiter((_as_number(value) for value in column), np.float64, self.count)
            self._numbers[field] = numbers
        return numbers

    def texts(self, field: str) -> StringColumn:
        texts = self._texts.get(field)
        if texts is None:
            texts = StringColumn(map(_as_text, self._column(field)), self.count)
            if field != "duration_s":  # changes over time
                self._texts[field] = texts
        return texts

    def search_texts(self) -> list[str]:
        """The lower-case texts that free words are searched in."""
        if self._search_texts is None:
            fields = self._fields
            parts = zip(fields["run_id"], fields["name"], fields["experiment"])
            self._search_texts = [f"{run_id} {name or ''} {experiment}".lower() for run_id, name, experiment in parts]
        return self._search_texts

    def status_fields(self, index: int) -> tuple[str, str, Optional[str]]:
        fields = self._fields
        return fields["run_id"][index], fields["status"][index], fields["target"][index]

    def duration(self, index: int, now: float) -> Optional[float]:
        return run_duration({name: self._fields[name][index] for name in ("started_at", "ended_at")}, now)

    def _column(self, field: str) -> list[Value]:
        if field == "duration_s":
            return list(self.numbers(field).tolist())
        return self._fields[field] if field in self._fields else self._labels[field]


def decode_head(head: bytes, is_open: bool) -> dict[str, Any]:
    text = head + b"}" if is_open else head
    try:
        row: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        row = json.loads(text)
    return row


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float))


def candidate_columns(name: str) -> tuple[str, ...]:
    """The columns that a name may refer to: without a group it may be a parameter, a metric or a tag."""
    return (name,) if name in FIELDS or _is_label(name) else tuple(f"{group}.{name}" for group in GROUPS)


def _is_label(name: str) -> bool:
    group, dot, rest = name.partition(".")
    return bool(dot and rest) and group in GROUPS


def _field_names(expression: Expression) -> list[str]:
    if isinstance(expression, Comparison):
        return list(candidate_columns(expression.field))
    if isinstance(expression, Not):
        return _field_names(expression.operand)
    if isinstance(expression, (And, Or)):
        return [name for inner in expression.operands for name in _field_names(inner)]
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
