"""What was logged that is no series of numbers, entry by entry, as it was logged."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.tracking.series import SCALAR, block_data, decode_entries, find_series
from runyard.wire.points import NO_STEP


def read_entries(database: Database, run_id: str, name: str) -> tuple[str, list[dict[str, Any]]]:
    """Its kind, and each entry with its step (None where none was given), time, rank and value."""
    with database.read() as connection:
        series = find_series(connection, run_id, name)
        if series is None:
            raise UserErrorException(f"run {run_id} has no metric {name!r}", run_id=run_id)
        if series.kind == SCALAR:
            raise UserErrorException(
                f"{name!r} of run {run_id} is a series of numbers", hint="read its points: /api/runs/RUN/metrics/NAME"
            )
        entries = [entry for _, _, data in block_data(connection, series) for entry in decode_entries(data)]
    return series.kind, [
        {"step": None if e.step == NO_STEP else e.step, "time": e.time, "rank": e.rank, "value": e.content}
        for e in entries
    ]
