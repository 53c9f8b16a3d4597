"""Imports runs through the yard's API. A repeated import sends only new points and changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from runyard.client.connection import Connection
from runyard.exchange.foreign_run import ForeignModel, ForeignRun, MetricSeries
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
    models: int = 0  # new or changed records of logged models
    unchanged_models: int = 0
    missing_files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by name of the run


class PointsMissing(Exception):
    """The yard lacks points before the first one of a series: they were sent, and the run was deleted since."""


def import_runs(
    connection: Connection,
    runs: Iterable[ForeignRun | ForeignModel],
    on_run: Callable[[ForeignRun], None] = lambda run: None,
) -> ImportCounts:
    """Send runs with their points and files to the yard, and logged models. ``on_run`` is called before each run."""
    importer = Importer(connection)
    for run in runs:
        if isinstance(run, ForeignModel):
            importer.send_model(run)
        else:
            on_run(run)
            importer.send(run)
    return importer.counts


class Importer:
    """Sends runs to the yard, each as often as there is new data."""

    def __init__(self, connection: Connection) -> None:
        self.counts = ImportCounts()
        self._connection = connection
        self._digests: dict[Path, tuple[tuple[int, int], str]] = {}  # with size and modification time

    def send(self, run: ForeignRun) -> tuple[int, int]:
        """Send a run and return the number of new points and files.

        Raises:
            PointsMissing: The yard lacks points before those of the run.
            UserErrorException: The yard refused the run.
        """
        request = _request(run)
        result = self._connection.post("/api/runs/import", asdict(request))
        points = self._send_points(run, result["points"])
        files = self._send_files(f"/api/runs/{run.run_id}/files", run.files, result["files"])
        has_changed = bool(result["changed"] or points or files)
        if result["is_pending"] or (run.source == TENSORBOARD and files):
            # a client that waits for the end must find all points and files
            final = self._connection.post("/api/runs/import", asdict(replace(request, data_follows=False)))
            has_changed |= final["changed"]
            if run.source == TENSORBOARD:  # the yard has read the points from the files
                points = sum(final["points"].values()) - sum(result["points"].values())
        counts = self.counts
        counts.points += points
        counts.files += files
        if run.missing_files:
            counts.missing_files[run.name] = tuple(run.missing_files)
        if result["created"]:
            counts.created += 1
        elif has_changed:
            counts.updated += 1
        else:
            counts.unchanged += 1
        return points, files

    def send_model(self, model: ForeignModel) -> None:
        """Send a logged model, after the run that has logged it. The files of a model without a run are its own."""
        result = self._connection.post("/api/logged-models/import", asdict(model.record))
        files = 0
        if model.record.run_id is None:
            folder = f"/api/2.0/mlflow-artifacts/artifacts/{model.record.model_id}"
            files = self._send_files(folder, model.files, result["files"])
        self.counts.files += files
        if result["created"] or result["changed"] or files:
            self.counts.models += 1
        else:
            self.counts.unchanged_models += 1

    def _send_points(self, run: ForeignRun, stored_counts: dict[str, int]) -> int:
        sent = 0
        for series in run.series():
            start = stored_counts.get(series.name, 0) - series.start
            if start < 0:
                raise PointsMissing(series.name)
            while start < len(series.values):
                end = min(start + _MAX_POINTS_PER_REQUEST, len(series.values))
                path = f"/api/runs/{run.run_id}/metrics/{series.name}"
                self._connection.put(path, _pack(series, start, end), at=series.start + start)
                sent += end - start
                start = end
        return sent

    def _send_files(self, folder: str, files: Sequence[tuple[str, Path]], stored_digests: dict[str, str]) -> int:
        sent = 0
        for name, path in files:
            with suppress(FileNotFoundError):  # a running script replaces or deletes its files
                if stored_digests.get(name) != self._digest(path):
                    with open(path, "rb") as stream:
                        self._connection.upload(f"{folder}/{name}", stream)
                    sent += 1
        return sent

    def _digest(self, path: Path) -> str:
        """Return the SHA-256 of a file; it is computed again if the file has changed."""
        stat = path.stat()
        state = (stat.st_size, stat.st_mtime_ns)
        entry = self._digests.get(path)
        if entry is None or entry[0] != state:
            entry = self._digests[path] = (state, sha256.of_file(path))
        return entry[1]


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
        datasets=list(run.datasets),
        model_outputs=dict(run.model_outputs),
        model_inputs=list(run.model_inputs),
        data_follows=True,
    )


def _pack(series: MetricSeries, start: int, end: int) -> bytes:
    columns = (series.steps[start:end], series.times[start:end], series.values[start:end])
    return pack_points(end - start, series.start + end, *(column.tobytes() for column in columns))
