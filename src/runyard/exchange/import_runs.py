"""Imports runs through the yard's API. A repeated import sends only new points and changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from runyard.client.connection import Connection
from runyard.exchange.foreign_run import ForeignRun, MetricSeries
from runyard.posix import sha256
from runyard.wire.exchange import TENSORBOARD, ImportRun
from runyard.wire.points import pack_points

_MAX_POINTS_PER_REQUEST = 1_000_000


@dataclass
class ImportCounts:
    created: int = 0
    updated: int = 0  # existed already, with new or changed data
    unchanged: int = 0
    points: int = 0
    files: int = 0


def import_runs(
    connection: Connection, runs: Iterable[ForeignRun], on_run: Callable[[ForeignRun], None] = lambda run: None
) -> ImportCounts:
    """Send runs with their points and files to the yard. ``on_run`` is called before each run."""
    counts = ImportCounts()
    for run in runs:
        on_run(run)
        result = connection.post("/api/runs/import", asdict(_request(run)))
        points = _send_points(connection, run, result["points"])
        files = _send_files(connection, run, result["files"])
        if run.source == TENSORBOARD and files:
            after = connection.post("/api/runs/import", asdict(_request(run)))
            points = sum(after["points"].values()) - sum(result["points"].values())
        counts.points += points
        counts.files += files
        if result["created"]:
            counts.created += 1
        elif result["changed"] or points or files:
            counts.updated += 1
        else:
            counts.unchanged += 1
    return counts


def _request(run: ForeignRun) -> ImportRun:
    return ImportRun(
        run_id=run.run_id,
        experiment=run.experiment,
        name=run.name,
        status=run.status,
        source=run.source,
        created_at=run.created_at,
        ended_at=run.ended_at,
        parent_id=run.parent_id,
        submitted_by=run.user,
        message=run.message,
        tags=dict(run.tags),
        params=dict(run.params),
    )


def _send_points(connection: Connection, run: ForeignRun, stored_counts: dict[str, int]) -> int:
    sent = 0
    for series in run.series():
        start = stored_counts.get(series.name, 0)
        while start < len(series.values):
            end = min(start + _MAX_POINTS_PER_REQUEST, len(series.values))
            path = f"/api/runs/{run.run_id}/metrics/{series.name}"
            connection.put(path, _pack(series, start, end), at=start)
            sent += end - start
            start = end
    return sent


def _pack(series: MetricSeries, start: int, end: int) -> bytes:
    columns = (series.steps[start:end], series.times[start:end], series.values[start:end])
    return pack_points(end - start, end, *(column.tobytes() for column in columns))


def _send_files(connection: Connection, run: ForeignRun, stored_digests: dict[str, str]) -> int:
    sent = 0
    for name, path in run.files:
        if stored_digests.get(name) != sha256.of_file(path):
            with open(path, "rb") as stream:
                connection.upload(f"/api/runs/{run.run_id}/files/{name}", stream)
            sent += 1
    return sent
