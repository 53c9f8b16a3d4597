"""Rows of the table, read from SQL without a record, an object or a view in between."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import orjson
from sqlalchemy import Connection

from runyard.lifecycle.state import TERMINAL
from runyard.spec.parameters import number_in
from runyard.store.runs import parsed

Value = Any  # a number, a text, a bool or None: what JSON has
_LONGEST = 500
_ENDED = frozenset(state.value for state in TERMINAL)

# One JSON array of what a row needs of the description, so that it is parsed once; NULL where it is not valid JSON.
_WORLD = (
    "'$.resources.nodes', '$.resources.processes_per_node', '$.launch.kind', '$.launch.workers', '$.launch.servers', "
    "'$.launch.evaluator'"
)
_RUNS = f"""
    SELECT number, run_id, experiment, name, state, target, type, parent_id, submitted_by,
        created_at, started_at, ended_at,
        CASE WHEN json_valid(spec) THEN json_extract(spec, {_WORLD}) END,
        CASE WHEN state IN ('Completed', 'Failed', 'Canceled') AND json_valid("end")
            THEN json_extract("end", '$.reason', '$.message') END
    FROM runs
"""
_LABELS = "SELECT run_id, key, value FROM {table}"
_LAST = "SELECT run_id, name, last FROM series WHERE kind = 'scalar'"
_AMONG = " run_id IN (SELECT value FROM json_each(?))"


class Row(NamedTuple):
    run_id: str
    fields: dict[str, Value]  # in the order in which they are told
    tags: dict[str, Optional[str]]
    params: dict[str, Value]
    metrics: dict[str, Value]

    @property
    def has_ended(self) -> bool:
        return self.fields["status"] in _ENDED

    def head(self) -> bytes:
        """The row as JSON, up to what changes by itself while the run goes on."""
        told = {**self.fields, "tags": self.tags, "params": self.params, "metrics": self.metrics}
        reason = told.pop("reason")
        if not self.has_ended:
            return encoded(told)[:-1]
        whole = encoded({**told, "duration_s": duration_of(self.fields, 0.0), "reason": reason})
        return bytes(memoryview(whole))  # what orjson gives back holds on to 8 kB, however short it is

    def labelled(self) -> Iterator[tuple[str, Value]]:
        yield from ((f"params.{name}", value) for name, value in self.params.items())
        yield from ((f"metrics.{name}", value) for name, value in self.metrics.items())
        yield from ((f"tags.{name}", "" if value is None else value) for name, value in self.tags.items())


def read_rows(connection: Connection, run_ids: Optional[Sequence[str]] = None) -> list[Row]:
    """All, or some of them, oldest first."""
    driver: Any = connection.connection.dbapi_connection  # plain tuples: there are a hundred thousand of them
    among = () if run_ids is None else (json.dumps(list(run_ids)),)
    where, and_ = (f" WHERE{_AMONG}", f" AND{_AMONG}") if among else ("", "")
    labels: dict[str, dict[str, dict[str, Value]]] = {}
    for table in ("tags", "params"):
        of_run = labels[table] = {}
        for run_id, key, value in driver.execute(_LABELS.format(table=table) + where, among):
            of_run.setdefault(run_id, {})[key] = _short(value) if table == "tags" else _param(value)
    metrics: dict[str, dict[str, Value]] = {}
    for run_id, name, last in driver.execute(_LAST + and_, among):
        metrics.setdefault(run_id, {})[name] = _metric(last)
    return [
        _row(row, labels["tags"].get(row[1], {}), labels["params"].get(row[1], {}), metrics.get(row[1], {}))
        for row in driver.execute(f"{_RUNS}{where} ORDER BY number", among)
    ]


def duration_of(fields: dict[str, Value], now: float) -> Optional[float]:
    """How long the script ran, or has run by now."""
    started, ended = fields["started_at"], fields["ended_at"]
    if started is None:
        return None
    return round(max(float(ended or now) - float(started), 0.0), 3)


def encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # half a character, as an odd argument may have
        return json.dumps(value).encode()


def _row(
    row: Sequence[Any], tags: dict[str, Optional[str]], params: dict[str, Value], metrics: dict[str, Value]
) -> Row:
    world, end = parsed(row[12]), parsed(row[13])
    nodes, ranks = _size(world)
    fields = {
        "run_id": row[1],
        "number": row[0],
        "experiment": _same(row[2]),
        "name": row[3],
        "display_name": row[3] or row[1],
        "status": _same(row[4]),
        "target": _same(row[5]),
        "type": _same(row[6]),
        "parent_id": row[7],
        "submitted_by": _same(row[8]),
        "created_at": row[9],
        "started_at": row[10],
        "ended_at": row[11],
        "nodes": nodes,
        "ranks": ranks,
        "reason": _reason(end),
    }
    return Row(row[1], fields, tags, params, metrics)


def _same(text: Optional[str]) -> Optional[str]:
    """One object for all runs that have it."""
    return text if text is None else sys.intern(text)


def _size(world: Optional[list[Any]]) -> tuple[int, int]:
    nodes, each, kind, workers, servers, evaluator = world or (None,) * 6
    nodes = nodes or 1
    if kind == "parameter-server":
        return nodes, (workers or 1) + (servers or 0) + (1 if evaluator else 0)
    return nodes, 1 if kind in (None, "single") else nodes * (each or 1)


def _reason(end: Optional[list[Any]]) -> str:
    """Why it ended, in a line; nothing for what went as it should."""
    reason, message = end or ("", "")
    if reason in ("", None, "succeeded"):
        return ""
    first = (message or "").splitlines()[:1]
    return f"{reason}: {first[0]}" if first and first[0] != reason else str(reason)


def _param(text: Optional[str]) -> Value:
    number = number_in(text)
    return _short(text) if number is None else number


def _short(text: Value) -> Value:
    """A table shows how a text begins: a prompt of a megabyte must not travel with every row."""
    return text[: _LONGEST - 1] + "…" if isinstance(text, str) and len(text) > _LONGEST else text


def _metric(last: Value) -> Value:
    """JSON knows no NaN; as a text it can be shown and is no number to anybody."""
    if not isinstance(last, str):
        return last  # a column of JSON has its numbers as numbers
    try:
        return _short(orjson.loads(last))
    except orjson.JSONDecodeError:
        value = json.loads(last)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value
