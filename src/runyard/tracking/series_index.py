"""Which series a run has, and where each stands, without reading their points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from sqlalchemy import func, select

from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.series import find_series


@dataclass(frozen=True)
class SeriesLine:
    name: str
    kind: str
    count: int
    last: Any
    min: Optional[float]
    max: Optional[float]


def series_of(database: Database, run_id: str) -> list[SeriesLine]:
    """In the order in which they were first logged."""
    table, blocks = schema.series.c, schema.blocks.c
    query = (
        select(table.name, table.kind, table.count, table.last, func.min(blocks.minimum), func.max(blocks.maximum))
        .select_from(schema.series.outerjoin(schema.blocks, table.series_id == blocks.series_id))
        .where(table.run_id == run_id)
        .group_by(table.series_id)
        .order_by(table.series_id)
    )
    with database.read() as connection:
        return [SeriesLine(*row) for row in connection.execute(query)]


def series_counts(database: Database, run_id: str) -> dict[str, int]:
    table = schema.series.c
    with database.read() as connection:
        query = select(table.name, table.count).where(table.run_id == run_id)
        return {row.name: row[1] for row in connection.execute(query)}


def system_run(run_id: str) -> str:
    """What the agents of a run measured is kept beside it, so that no name of a script's metric can be taken."""
    return f"{run_id}/system"


def place_of(database: Database, run_id: str, name: str) -> tuple[str, str]:
    """Where a series is kept: `system/node-0/cpu` among what the agents measured, unless the script logged it."""
    prefix, _, rest = name.partition("/")
    if prefix != "system" or not rest:
        return run_id, name
    with database.read() as connection:
        own = find_series(connection, run_id, name)
    return (run_id, name) if own is not None else (system_run(run_id), rest)
