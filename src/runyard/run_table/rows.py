"""Reads rows of the table with plain SQL, without building run records."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import orjson
from sqlalchemy import Connection

from runyard.lifecycle.state import TERMINAL
from runyard.spec.parameters import parse_number
from runyard.store.runs import parse_json

Value = Any  # a number, string, bool or None
_MAX_TEXT_LENGTH = 500
_ENDED = frozenset(state.value for state in TERMINAL)

# Extracted as one JSON array, so that the description is parsed once; NULL where it is not valid JSON.
_SPEC_PATHS = (
    "'$.resources.nodes', '$.resources.processes_per_node', '$.launch.kind', '$.launch.workers', '$.launch.servers', "
    "'$.launch.evaluator'"
)
_RUNS = f"""
    SELECT number, run_id, experiment, name, state, target, type, parent_id, submitted_by,
        created_at, started_at, ended_at,
        CASE WHEN json_valid(spec) THEN json_extract(spec, {_SPEC_PATHS}) END,
        CASE WHEN state IN ('Completed', 'Failed', 'Canceled') AND json_valid("end")
            THEN json_extract("end", '$.reason', '$.message') END
    FROM runs
"""
_LABELS = "SELECT run_id, key, value FROM {table}"
_LAST = "SELECT run_id, name, last FROM series WHERE kind = 'scalar'"
_RUN_ID_FILTER = " run_id IN (SELECT value FROM json_each(?))"


class Row(NamedTuple):
    run_id: str
    fields: dict[str, Value]  # in the order of the JSON
    tags: dict[str, Optional[str]]
    params: dict[str, Value]
    metrics: dict[str, Value]

    @property
    def has_ended(self) -> bool:
        return self.fields["status"] in _ENDED

    def head(self) -> bytes:
        """The row as JSON; for a live run without its end, the fields that change over time."""
        content = {**self.fields, "tags": self.tags, "params": self.params, "metrics": self.metrics}
        reason = content.pop("reason")
        if not self.has_ended:
            return encode_json(content)[:-1]
        row = encode_json({**content, "duration_s": run_duration(self.fields, 0.0), "reason": reason})
        return bytes(memoryview(row))  # a copy: the buffer of orjson's result occupies at least 8 kB

    def labels(self) -> Iterator[tuple[str, Value]]:
        yield from ((f"params.{name}", value) for name, value in self.params.items())
        yield from ((f"metrics.{name}", value) for name, value in self.metrics.items())
        yield from ((f"tags.{name}", "" if value is None else value) for name, value in self.tags.items())


def read_rows(connection: Connection, run_ids: Optional[Sequence[str]] = None) -> list[Row]:
    """Read all rows, or those of some runs, oldest first."""
    driver: Any = connection.connection.dbapi_connection  # plain tuples: there may be 100,000 of them
    arguments = () if run_ids is None else (json.dumps(list(run_ids)),)
    where, and_ = (f" WHERE{_RUN_ID_FILTER}", f" AND{_RUN_ID_FILTER}") if arguments else ("", "")
    labels: dict[str, dict[str, dict[str, Value]]] = {}
    for table in ("tags", "params"):
        by_run = labels[table] = {}
        for run_id, key, value in driver.execute(_LABELS.format(table=table) + where, arguments):
            by_run.setdefault(run_id, {})[key] = _truncate(value) if table == "tags" else _param(value)
    metrics: dict[str, dict[str, Value]] = {}
    for run_id, name, last in driver.execute(_LAST + and_, arguments):
        metrics.setdefault(run_id, {})[name] = _metric(last)
    return [
        _row(row, labels["tags"].get(row[1], {}), labels["params"].get(row[1], {}), metrics.get(row[1], {}))
        for row in driver.execute(f"{_RUNS}{where} ORDER BY number", arguments)
    ]


def run_duration(fields: dict[str, Value], now: float) -> Optional[float]:
    """Seconds that the script ran, or has run so far."""
    started, ended = fields["started_at"], fields["ended_at"]
    if started is None:
        return None
    return round(max(float(now if ended is None else ended) - float(started), 0.0), 3)


def encode_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, as in an argument with invalid Unicode
        return json.dumps(value).encode()


def _row(
    row: Sequence[Any], tags: dict[str, Optional[str]], params: dict[str, Value], metrics: dict[str, Value]
) -> Row:
    spec_values, end = parse_json(row[12]), parse_json(row[13])
    nodes, ranks = _node_and_rank_count(spec_values)
    fields = {
        "run_id": row[1],
        "number": row[0],
        "experiment": _intern(row[2]),
        "name": row[3],
        "display_name": row[3] or row[1],
        "status": _intern(row[4]),
        "target": _intern(row[5]),
        "type": _intern(row[6]),
        "parent_id": row[7],
        "submitted_by": _intern(row[8]),
        "created_at": row[9],
        "started_at": row[10],
        "ended_at": row[11],
        "nodes": nodes,
        "ranks": ranks,
        "reason": _reason(end),
    }
    return Row(row[1], fields, tags, params, metrics)


def _intern(text: Optional[str]) -> Optional[str]:
    """Share one string object between all runs that have it."""
    return text if text is None else sys.intern(text)


def _node_and_rank_count(spec_values: Optional[list[Any]]) -> tuple[int, int]:
    nodes, per_node, kind, workers, servers, evaluator = spec_values or (None,) * 6
    nodes = nodes or 1
    if kind == "parameter-server":
        return nodes, (workers or 1) + (servers or 0) + (1 if evaluator else 0)
    return nodes, 1 if kind in (None, "single") else nodes * (per_node or 1)


def _reason(end: Optional[list[Any]]) -> str:
    """The reason for the end in one line; empty if the run succeeded."""
    reason, message = end or ("", "")
    if reason in ("", None, "succeeded"):
        return ""
    first = (message or "").splitlines()[:1]
    return f"{reason}: {first[0]}" if first and first[0] != reason else str(reason)


def _param(text: Optional[str]) -> Value:
    number = parse_number(text)
    return _truncate(text) if number is None else number


def _truncate(text: Value) -> Value:
    """Limit texts to their beginning: a prompt of a megabyte must not be sent with every row."""
    return text[: _MAX_TEXT_LENGTH - 1] + "…" if isinstance(text, str) and len(text) > _MAX_TEXT_LENGTH else text


def _metric(last: Value) -> Value:
    """Decode the last value; NaN and infinities become strings, because JSON has no numbers for them."""
    if not isinstance(last, str):
        return last  # SQLite returns numbers in a JSON column as numbers
    try:
        return _truncate(orjson.loads(last))
    except orjson.JSONDecodeError:
        value = json.loads(last)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value
