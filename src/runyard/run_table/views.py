"""Complete descriptions of many runs as encoded JSON, read with plain SQL.

Each is equal to the :class:`runyard.wire.runs.RunView` of its run, without creating objects for it: JSON columns are
copied as text where the answer contains them unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

import orjson
from sqlalchemy import Connection

from runyard.lifecycle.state import TERMINAL, RunState
from runyard.lifecycle.warning import from_stored
from runyard.store.runs import parse_json
from runyard.wire.runs import EndView

Activity = Callable[[str, str, Optional[str]], tuple[str, Optional[float]]]
_COLUMNS = (
    "number, run_id, experiment, state, type, name, parent_id, root_id, target, snapshot_id, environment_key, "
    'submitted_by, created_at, started_at, ended_at, "end", timeline, warnings, spec, version, attempts'
)
_RUNS = f"SELECT {_COLUMNS} FROM runs WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number DESC"
_LABELS = "SELECT run_id, key, value FROM {table} WHERE run_id IN (SELECT value FROM json_each(?))"
_ENDED = frozenset(state.value for state in TERMINAL)
_END_DEFAULTS = {name: field.default for name, field in EndView.__dataclass_fields__.items() if name != "reason"}
_QUEUED = RunState.QUEUED.value


def read_views(connection: Connection, numbers: Sequence[int], runs_folder: Path, activity: Activity) -> list[bytes]:
    """Read the descriptions of the runs with these numbers, newest first.

    Args:
        connection: The database.
        numbers: The runs.
        runs_folder: The folder that contains the folders of the runs.
        activity: Returns what a run does, by its id, status and target, and since when, for runs that have not ended.
    """
    driver: Any = connection.connection.dbapi_connection  # plain tuples: there may be 10,000 of them
    rows = driver.execute(_RUNS, (json.dumps(list(numbers)),)).fetchall()
    run_ids = (json.dumps([row[1] for row in rows]),)
    tags, properties = (_labels(driver, table, run_ids) for table in ("tags", "properties"))
    folder = f"{runs_folder}/"
    views = []
    for row in rows:
        status, run_id = row[3], row[1]
        has_ended = status in _ENDED
        end = parse_json(row[15]) if has_ended else None
        text, since = ("", None) if has_ended else activity(run_id, status, row[8])
        attempts = _attempts(row[20])
        view = {
            "run_id": run_id,
            "number": row[0],
            "experiment": row[2],
            "status": status,
            "type": row[4],
            "name": row[5],
            "parent_id": row[6],
            "root_id": row[7],
            "target": row[8],
            "snapshot_id": row[9],
            "environment_key": row[10],
            "submitted_by": row[11],
            "created_at": row[12],
            "started_at": row[13],
            "ended_at": row[14],
            "end": {**_END_DEFAULTS, **end} if end else None,
            "timeline": _fragment(row[16]),
            "activity": text,
            "activity_since": parse_json(row[16]).get(_QUEUED) if status == _QUEUED else since,
            "warnings": [] if row[17] == "[]" else [from_stored(value).text for value in parse_json(row[17])],
            "tags": tags.get(run_id, {}),
            "properties": properties.get(run_id, {}),
            "spec": _fragment(row[18]),
            "folder": folder + run_id,
            "version": row[19],
            "attempt": len(attempts) + 1,
            "attempts": attempts,
        }
        views.append(_encode(view, row))
    return views


def _labels(driver: Any, table: str, run_ids: tuple[str]) -> dict[str, dict[str, Optional[str]]]:
    labels: dict[str, dict[str, Optional[str]]] = {}
    for run_id, key, value in driver.execute(_LABELS.format(table=table), run_ids):
        labels.setdefault(run_id, {})[key] = value
    return labels


def _fragment(text: Optional[str]) -> Any:
    """Stored JSON that is copied into the answer; parsed if it may contain numbers that JSON does not have."""
    if text is None or text == "null":
        return None
    return parse_json(text) if "NaN" in text or "Infinity" in text else orjson.Fragment(text)


def _attempts(text: Optional[str]) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "reason": attempt["end"]["reason"],
            "message": attempt["end"].get("message", ""),
            "node": attempt["end"].get("node"),
            "ended_at": attempt["ended_at"],
        }
        for number, attempt in enumerate(parse_json(text) or (), 1)
    ]


def _encode(view: dict[str, Any], row: Sequence[Any]) -> bytes:
    try:
        return orjson.dumps(view)
    except orjson.JSONEncodeError:  # a lone surrogate, as in an argument with invalid Unicode
        view = {**view, "timeline": parse_json(row[16]), "spec": parse_json(row[18])}
        return json.dumps(view).encode()
