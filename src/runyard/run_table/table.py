"""All runs in memory, as little of each as a table needs: the row as it is sent, and columns when asked for.

SQL is the truth. Before an answer, the rows that changed since the last one are read again by the number of their
change, so that a table of 10,000 runs costs what has changed in it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

import numpy as np

from runyard import clock
from runyard.run_table.columns import Columns, is_number, parsed
from runyard.run_table.evaluate import matching
from runyard.run_table.fields import DELETED, GROUPS, STAGE
from runyard.run_table.order import in_order
from runyard.run_table.parser import All, Compare, Not, parse
from runyard.run_table.rows import Row, encoded, read_rows
from runyard.store.database import Database

MOST_CHANGES = 500  # more than this at once, and a reader is better off reading its page anew
_IS_DELETED = encoded({STAGE: DELETED})[1:-1]  # as it stands among the tags; within a text its quotes would be escaped
Activity = Callable[[str, str, Optional[str]], str]


class Page(NamedTuple):
    total: int
    rows: list[bytes]
    version: int


class RunTable:
    """``activity(run_id, status, target)`` says what a run that has not ended is doing or waiting for."""

    def __init__(self, database: Database, activity: Activity) -> None:
        self._database, self._activity = database, activity
        self._lock = threading.Lock()
        self._version = 0
        self._places: dict[str, int] = {}
        self._heads: list[bytes] = []
        self._columns = Columns()
        self._names: Counter[str] = Counter()  # how many runs have "metrics.loss"
        self._number_names: Counter[str] = Counter()  # in how many of them it is a number

    def page(
        self,
        query: str = "",
        sort: str = "-created_at",
        offset: int = 0,
        limit: int = 100,
        experiment: Optional[str] = None,
    ) -> Page:
        wanted = parse(query)
        if experiment is not None:
            wanted = All((Compare("experiment", "=", experiment, None), wanted))
        with self._lock:
            self._refresh()
            if self._names[f"tags.{STAGE}"] > 0 and STAGE not in query:
                wanted = All((wanted, Not(Compare(f"tags.{STAGE}", "=", DELETED, None))))
            self._columns.load(self._heads, wanted, sort)
            chosen = np.flatnonzero(matching(self._columns, wanted))
            shown = in_order(self._columns, chosen, sort)[offset : offset + limit].tolist()
            return Page(len(chosen), self._told(shown), self._version)

    def rows(self, run_ids: Iterable[str]) -> list[tuple[str, Optional[bytes]]]:
        """Those that are there; None for one that was deleted."""
        with self._lock:
            self._refresh()
            known = [run_id for run_id in run_ids if run_id in self._places]
            rows = self._told([self._places[run_id] for run_id in known])
        return [(run_id, None if _IS_DELETED in row else row) for run_id, row in zip(known, rows)]

    def changed(self, after: int) -> tuple[int, Optional[list[str]]]:
        """The version by now, and the runs that changed since ``after``, in order; None when they are too many."""
        with self._lock:
            self._refresh()
            version = self._version
        if after == version:
            return version, []
        with self._database.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT run_id FROM changes WHERE change > ? ORDER BY change LIMIT ?", (after, MOST_CHANGES + 1)
            ).all()
        if after > version or len(found) > MOST_CHANGES:  # a version of another database, or of long ago
            return version, None
        return version, [run_id for (run_id,) in found]

    @property
    def version(self) -> int:
        with self._lock:
            self._refresh()
            return self._version

    def names(self) -> list[tuple[str, bool, int]]:
        """(name, whether it is a number, in how many runs) of every parameter, metric and tag."""
        with self._lock:
            self._refresh()
            return [
                (name, self._number_names[name] * 2 >= count, count)
                for name, count in sorted(self._names.items())
                if count > 0
            ]

    def values(self, field: str) -> list[tuple[str, int]]:
        """All values of a field as texts, the commonest first, with how many runs have each."""
        with self._lock:
            self._refresh()
            self._columns.load_names(self._heads, [field])
            counts = Counter(self._columns.texts(field).counts())
        return counts.most_common()

    def _refresh(self) -> None:
        with self._database.read() as connection:
            query = "SELECT change, run_id FROM changes WHERE change > ? ORDER BY change"
            changes = connection.exec_driver_sql(query, (self._version,)).all()
            if not changes:
                return
            everything = self._version == 0
            rows = read_rows(connection, None if everything else [run_id for _, run_id in changes])
        for row in rows:
            self._put(row)
        self._version = changes[-1][0]

    def _put(self, row: Row) -> None:
        head = row.head()
        place = self._places.get(row.run_id)
        if place is None:
            self._places[row.run_id] = len(self._heads)
            self._heads.append(head)
        else:
            for name, value in labels_in(parsed(self._heads[place], place in self._columns.going_on)):
                self._names[name] -= 1
                self._number_names[name] -= is_number(value)
            self._heads[place] = head
        for name, value in row.labelled():
            self._names[name] += 1
            self._number_names[name] += is_number(value)
        self._columns.put(place, row)

    def _told(self, places: list[int]) -> list[bytes]:
        """Of a run that goes on, how long and what it does are as of now."""
        now = clock.now()
        going_on = self._columns.going_on
        heads = self._heads
        if not going_on:
            return [heads[place] for place in places]
        return [self._as_of(place, now) if place in going_on else heads[place] for place in places]

    def _as_of(self, place: int, now: float) -> bytes:
        run_id, status, target = self._columns.about(place)
        tail = {
            "duration_s": self._columns.duration(place, now),
            "reason": self._activity(run_id, status, target),
        }
        return self._heads[place] + b"," + encoded(tail)[1:]


def labels_in(row: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for group in GROUPS:
        yield from ((f"{group}.{name}", value) for name, value in row[group].items())
