"""Into the yard, through its API. Sent again, nothing changes; what grew meanwhile goes on where it was."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from runyard.client.connection import Connection
from runyard.exchange.foreign_run import Curve, FoundRun
from runyard.wire.exchange import ImportRun
from runyard.wire.points import pack_points

_POINTS_AT_ONCE = 1_000_000
_CHUNK = 1 << 20


@dataclass
class Tally:
    new: int = 0
    grown: int = 0  # known already, with something new
    same: int = 0
    points: int = 0
    files: int = 0


def import_runs(
    connection: Connection, found: Iterable[FoundRun], told: Callable[[FoundRun], None] = lambda run: None
) -> Tally:
    tally = Tally()
    for run in found:
        told(run)
        answer = connection.post("/api/runs/import", asdict(_request(run)))
        points = _send_points(connection, run, answer["points"])
        files = _send_files(connection, run, answer["files"])
        tally.points += points
        tally.files += files
        if answer["created"]:
            tally.new += 1
        elif answer["changed"] or points or files:
            tally.grown += 1
        else:
            tally.same += 1
    return tally


def _request(run: FoundRun) -> ImportRun:
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


def _send_points(connection: Connection, run: FoundRun, known: dict[str, int]) -> int:
    sent = 0
    for curve in run.curves():
        at = known.get(curve.name, 0)
        while at < len(curve.values):
            end = min(at + _POINTS_AT_ONCE, len(curve.values))
            path = f"/api/runs/{run.run_id}/metrics/{curve.name}"
            connection.put(path, _packed(curve, at, end), at=at)
            sent += end - at
            at = end
    return sent


def _packed(curve: Curve, begin: int, end: int) -> bytes:
    return pack_points(
        end - begin,
        end,
        _bytes(curve.steps[begin:end]),
        _bytes(curve.times[begin:end]),
        _bytes(curve.values[begin:end]),
    )


def _bytes(column: array[int] | array[float]) -> bytes:
    return column.tobytes()


def _send_files(connection: Connection, run: FoundRun, known: dict[str, str]) -> int:
    sent = 0
    for name, path in run.files:
        if known.get(name) != _digest(path):
            with open(path, "rb") as stream:
                connection.upload(f"/api/runs/{run.run_id}/files/{name}", stream)
            sent += 1
    return sent


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
