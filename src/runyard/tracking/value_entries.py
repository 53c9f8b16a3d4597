"""Reads the logged values of one metric of any kind, from a cursor on."""

from __future__ import annotations

from typing import Any

from runyard.context.documents import SCALAR
from runyard.errors import UserErrorException
from runyard.spec.json import replace_non_finite
from runyard.store.database import Database
from runyard.tracking.blocks import decode
from runyard.tracking.series import Entry, block_data, decode_entries, find_series
from runyard.wire.points import NO_STEP


def read_entries(database: Database, run_id: str, name: str, *, after: int = 0, limit: int = 1000) -> dict[str, Any]:
    """Name, kind, count, and the values from index ``after`` on, each with its step (or None), time and rank.

    The result is valid JSON: NaN and infinities are replaced by strings.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None:
            raise UserErrorException(f"run {run_id} has no metric {name!r}", run_id=run_id)
        entries: list[Entry] = []
        for first, count, data in block_data(connection, series, after=after, before=after + limit):
            part = slice(max(after - first, 0), min(after + limit - first, count))
            entries += _scalars(data, part) if series.kind == SCALAR else decode_entries(data)[part]
    return {
        "name": series.name,
        "kind": series.kind,
        "count": series.count,
        "next": after + len(entries),
        "values": [
            {
                "step": None if entry.step == NO_STEP else entry.step,
                "time": entry.time,
                "rank": entry.rank,
                "value": replace_non_finite(entry.content),
            }
            for entry in entries
        ],
    }


def _scalars(data: bytes, part: slice) -> list[Entry]:
    columns = decode(data).take(part)
    rows = zip(columns.steps.tolist(), columns.times.tolist(), columns.ranks.tolist(), columns.plain())
    return [Entry(*row) for row in rows]
