"""The values of one metric as they were logged, whatever their kind, from a cursor on: what a picture is drawn from."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException
from runyard.spec.json import sayable
from runyard.store.database import Database
from runyard.tracking.blocks import decode
from runyard.tracking.series import SCALAR, Entry, block_data, decode_entries, find_series
from runyard.wire.points import NO_STEP


def read_entries(database: Database, run_id: str, name: str, *, after: int = 0, limit: int = 1000) -> dict[str, Any]:
    """Name, kind, count, and the values from index ``after`` on, each with its step (or None), time and rank.

    It is strict JSON: what JSON cannot say, not-a-number and infinities, is said in words.
    """
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None:
            raise UserErrorException(f"run {run_id} has no metric {name!r}", run_id=run_id)
        found: list[Entry] = []
        for first, count, data in block_data(connection, series, after=after, before=after + limit):
            part = slice(max(after - first, 0), min(after + limit - first, count))
            found += _scalars(data, part) if series.kind == SCALAR else decode_entries(data)[part]
    return {
        "name": series.name,
        "kind": series.kind,
        "count": series.count,
        "next": after + len(found),
        "values": [
            {
                "step": None if entry.step == NO_STEP else entry.step,
                "time": entry.time,
                "rank": entry.rank,
                "value": sayable(entry.content),
            }
            for entry in found
        ],
    }


def _scalars(data: bytes, part: slice) -> list[Entry]:
    columns = decode(data).take(part)
    facts = zip(columns.steps.tolist(), columns.times.tolist(), columns.ranks.tolist(), columns.plain())
    return [Entry(*fact) for fact in facts]
