"""Runs as a pandas DataFrame. pandas is imported only when a table is requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException

if TYPE_CHECKING:
    from runyard.client.connection import Connection

_PAGE = 1000
_FIRST = ("run_id", "number", "experiment", "name", "status", "reason", "target", "type", "parent_id", "submitted_by")
_TIMES = ("created_at", "started_at", "ended_at")
_LAST = ("duration_s", "nodes", "ranks")


def runs_frame(connection: Connection, experiment: str, query: str) -> Any:
    """Return one row per run, newest first, with columns `params.…`, `metrics.…` (the last values) and `tags.…`."""
    try:
        import pandas
    except ImportError:
        raise UserErrorException(
            "to_dataframe needs pandas, which is not installed here",
            hint="pip install pandas, or pip install 'runyard[notebook]'",
        ) from None
    rows = _rows(connection, experiment, query)
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in (*_FIRST, *_TIMES, *_LAST)}
    for group in ("params", "metrics", "tags"):
        for name in sorted({name for row in rows for name in row[group]}):
            columns[f"{group}.{name}"] = [row[group].get(name) for row in rows]
    frame = pandas.DataFrame(columns)
    for name in _TIMES:
        frame[name] = pandas.to_datetime(frame[name].astype(float), unit="s", utc=True)
    for name in [name for name in frame.columns if name.startswith(("params.", "metrics."))]:
        frame[name] = _numeric(pandas, frame[name])
    return frame


def _rows(connection: Connection, experiment: str, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        page = connection.get(
            "/api/runs/table",
            experiment=experiment,
            query=query or None,
            sort="-number",
            offset=len(rows),
            limit=_PAGE,
        )
        rows += page["rows"]
        if len(page["rows"]) < _PAGE:
            return rows


def _numeric(pandas: Any, column: Any) -> Any:
    """Convert to numbers if all values are numeric: parameters are stored as text."""
    if any(isinstance(value, (dict, list, bool)) for value in column):
        return column
    try:
        return pandas.to_numeric(column)
    except (ValueError, TypeError):
        return column
