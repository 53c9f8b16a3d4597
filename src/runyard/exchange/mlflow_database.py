"""Reads MLflow's database store in SQLite, the default of its server and of newer clients."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import NOT_ENDED, ForeignRun, MetricSeries, add_point, list_files, new_series
from runyard.exchange.mlflow_folder import PARENT, STATUS_BY_NAME, local_path

_MAGIC = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def runs(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs that are not deleted, in the order of their start."""
    with closing(_open(path)) as database:
        try:
            rows = database.execute(
                "SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, r.user_id, r.artifact_uri,"
                " e.name AS experiment FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id"
                " WHERE r.lifecycle_stage = 'active' AND e.lifecycle_stage = 'active'"
                " ORDER BY r.start_time, r.run_uuid"
            ).fetchall()
        except sqlite3.Error as error:
            raise UserErrorException(
                f"{path} is not an MLflow database: {error}", hint="pass mlflow.db, or the folder that contains mlruns"
            ) from error
        for row in rows:
            yield _run(path, database, row)


def _run(path: Path, database: sqlite3.Connection, row: sqlite3.Row) -> ForeignRun:
    run_id = row["run_uuid"]
    tags = dict(database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run_id,)).fetchall())
    artifacts = local_path(row["artifact_uri"] or "", path.parent)
    return ForeignRun(
        run_id=run_id,
        experiment=row["experiment"],
        name=row["name"] or tags.get("mlflow.runName") or run_id,
        status=STATUS_BY_NAME.get(row["status"], NOT_ENDED),
        created_at=(row["start_time"] or 0) / 1000,
        ended_at=row["end_time"] / 1000 if row["end_time"] else None,
        source="mlflow",
        series=lambda: _read_series(path, run_id),
        parent_id=tags.get(PARENT),
        user=row["user_id"] or "",
        tags=tags,
        params=dict(database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run_id,)).fetchall()),
        files=[*(list_files(artifacts) if artifacts else []), *_model_files(path, database, run_id)],
    )


def _read_series(path: Path, run_id: str) -> Iterator[MetricSeries]:
    """Read the metrics. SQLite has no NaN: MLflow stores 0 and a flag, and the largest number for infinity."""
    with closing(_open(path)) as database:
        query = (
            "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY key, timestamp, step"
        )
        series: MetricSeries | None = None
        for key, step, timestamp, value, is_nan in database.execute(query, (run_id,)):
            if series is None or series.name != key:
                if series is not None:
                    yield series
                series = new_series(key)
            number = math.nan if is_nan else math.copysign(math.inf, value) if abs(value) >= 1.79e308 else value
            add_point(series, step, timestamp / 1000, number)
        if series is not None:
            yield series


def _model_files(path: Path, database: sqlite3.Connection, run_id: str) -> list[tuple[str, Path]]:
    try:
        rows: list[Any] = database.execute(
            "SELECT model_id, artifact_location FROM logged_models WHERE source_run_id = ?", (run_id,)
        ).fetchall()
    except sqlite3.OperationalError:  # the table exists since MLflow 3
        return []
    files = []
    for model_id, location in rows:
        folder = local_path(location or "", path.parent)
        files += list_files(folder, f"models/{model_id}/") if folder else []
    return files


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database
