"""Lists the series of a run with their statistics, without reading their points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from sqlalchemy import func, select

from runyard.spec.json import replace_non_finite
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.series import find_series


@dataclass(frozen=True)
class SeriesInfo:
    name: str
    kind: str
    count: int
    last: Any  # NaN and infinity as strings, which JSON has
    min: Optional[float]
    max: Optional[float]


def list_series(database: Database, run_id: str) -> list[SeriesInfo]:
    """All series of a run, in the order in which they were first logged."""
    table, blocks = schema.series.c, schema.blocks.c
    query = (
        select(table.name, table.kind, table.count, table.last, func.min(blocks.minimum), func.max(blocks.maximum))
        .select_from(schema.series.outerjoin(schema.blocks, table.series_id == blocks.series_id))
        .where(table.run_id == run_id)
        .group_by(table.series_id)
        .order_by(table.series_id)
    )
    with database.read() as connection:
        rows = connection.execute(query).all()
    return [
        SeriesInfo(name, kind, count, replace_non_finite(last), *extremes)
        for name, kind, count, last, *extremes in rows
    ]


def series_counts(database: Database, run_id: str) -> dict[str, int]:
    table = schema.series.c
    with database.read() as connection:
        query = select(table.name, table.count).where(table.run_id == run_id)
        return {row.name: row[1] for row in connection.execute(query)}


def system_run_id(run_id: str) -> str:
    """The id under which the agents' measurements of a run are stored, so that they never clash with its metrics."""
    return f"{run_id}/system"


def locate_series(database: Database, run_id: str, name: str) -> tuple[str, str]:
    """The run id and name under which a series is stored.

    `system/node-0/cpu` is a measurement of the agents, unless the script logged a metric of this name.
    """
    prefix, _, rest = name.partition("/")
    if prefix != "system" or not rest:
        return run_id, name
    with database.read() as connection:
        logged = find_series(connection, run_id, name)
    return (run_id, name) if logged is not None else (system_run_id(run_id), rest)
