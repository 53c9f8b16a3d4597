"""All runs in memory: each row as encoded JSON, plus the columns that queries use.

The database is authoritative. Every request first reloads the rows that changed since the last one, so its cost
depends on the number of changes, not on the number of runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

import numpy as np

from runyard import clock
from runyard.run_table.columns import Columns, decode_head, is_number
from runyard.run_table.evaluate import evaluate
from runyard.run_table.fields import DELETED, GROUPS, STAGE
from runyard.run_table.order import sort_rows
from runyard.run_table.parser import And, Comparison, Not, parse
from runyard.run_table.rows import Row, encode_json, read_rows
from runyard.store.database import Database

MAX_CHANGES = 500  # with more changes than this, a client should reload its page
_IS_DELETED = encode_json({STAGE: DELETED})[1:-1]  # as encoded in tags; inside a string its quotes would be escaped
Activity = Callable[[str, str, Optional[str]], str]


class Page(NamedTuple):
    total: int
    rows: list[bytes]
    version: int


class RunTable:
    """``activity(run_id, status, target)`` describes the current step of a run that has not ended."""

    def __init__(self, database: Database, activity: Activity) -> None:
        self._database, self._activity = database, activity
        self._lock = threading.Lock()
        self._version = 0
        self._indices: dict[str, int] = {}
        self._heads: list[bytes] = []
        self._columns = Columns()
        self._names: Counter[str] = Counter()  # number of runs that have "metrics.loss"
        self._number_names: Counter[str] = Counter()  # number of those in which it is a number

    def page(
        self,
        query: str = "",
        sort: str = "-created_at",
        offset: int = 0,
        limit: int = 100,
        experiment: Optional[str] = None,
    ) -> Page:
        expression = parse(query)
        if experiment is not None:
            expression = And((Comparison("experiment", "=", experiment, None), expression))
        with self._lock:
            self._refresh()
            if self._names[f"tags.{STAGE}"] > 0 and STAGE not in query:
                expression = And((expression, Not(Comparison(f"tags.{STAGE}", "=", DELETED, None))))
            self._columns.load(self._heads, expression, sort)
            matches = np.flatnonzero(evaluate(self._columns, expression))
            visible = sort_rows(self._columns, matches, sort)[offset : offset + limit].tolist()
            return Page(len(matches), self._encode_rows(visible), self._version)

    def rows(self, run_ids: Iterable[str]) -> list[tuple[str, Optional[bytes]]]:
        """Return the rows of the given runs that exist; None for deleted ones."""
        with self._lock:
            self._refresh()
            existing = [run_id for run_id in run_ids if run_id in self._indices]
            rows = self._encode_rows([self._indices[run_id] for run_id in existing])
        return [(run_id, None if _IS_DELETED in row else row) for run_id, row in zip(existing, rows)]

    def changed(self, after: int) -> tuple[int, Optional[list[str]]]:
        """Return the current version and the runs that changed since ``after``, in order; None if they are too many."""
        with self._lock:
            self._refresh()
            version = self._version
        if after == version:
            return version, []
        with self._database.read() as connection:
            rows = connection.exec_driver_sql(
                "SELECT run_id FROM changes WHERE change > ? ORDER BY change LIMIT ?", (after, MAX_CHANGES + 1)
            ).all()
        if after > version or len(rows) > MAX_CHANGES:  # a version of another database, or a very old one
            return version, None
        return version, [run_id for (run_id,) in rows]

    @property
    def version(self) -> int:
        with self._lock:
            self._refresh()
            return self._version

    def names(self) -> list[tuple[str, bool, int]]:
        """List (name, is it mostly a number, number of runs) of every parameter, metric and tag."""
        with self._lock:
            self._refresh()
            return [
                (name, self._number_names[name] * 2 >= count, count)
                for name, count in sorted(self._names.items())
                if count > 0
            ]

    def values(self, field: str) -> list[tuple[str, int]]:
        """List the values of a field as texts with their number of runs, most common first."""
        with self._lock:
            self._refresh()
            self._columns.load_columns(self._heads, [field])
            counts = Counter(self._columns.texts(field).counts())
        return counts.most_common()

    def _refresh(self) -> None:
        with self._database.read() as connection:
            query = "SELECT change, run_id FROM changes WHERE change > ? ORDER BY change"
            changes = connection.exec_driver_sql(query, (self._version,)).all()
            if not changes:
                return
            is_first_load = self._version == 0
            rows = read_rows(connection, None if is_first_load else [run_id for _, run_id in changes])
        for row in rows:
            self._put(row)
        self._version = changes[-1][0]

    def _put(self, row: Row) -> None:
        head = row.head()
        index = self._indices.get(row.run_id)
        if index is None:
            self._indices[row.run_id] = len(self._heads)
            self._heads.append(head)
        else:
            for name, value in row_labels(decode_head(self._heads[index], index in self._columns.live_rows)):
                self._names[name] -= 1
                self._number_names[name] -= is_number(value)
            self._heads[index] = head
        for name, value in row.labels():
            self._names[name] += 1
            self._number_names[name] += is_number(value)
        self._columns.put(index, row)

    def _encode_rows(self, indices: list[int]) -> list[bytes]:
        """Return encoded rows; duration and activity of live runs are computed now."""
        now = clock.now()
        live_rows = self._columns.live_rows
        heads = self._heads
        if not live_rows:
            return [heads[index] for index in indices]
        return [self._complete_row(index, now) if index in live_rows else heads[index] for index in indices]

    def _complete_row(self, index: int, now: float) -> bytes:
        run_id, status, target = self._columns.status_fields(index)
        tail = {
            "duration_s": self._columns.duration(index, now),
            "reason": self._activity(run_id, status, target),
        }
        return self._heads[index] + b"," + encode_json(tail)[1:]


def row_labels(row: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for group in GROUPS:
        yield from ((f"{group}.{name}", value) for name, value in row[group].items())
