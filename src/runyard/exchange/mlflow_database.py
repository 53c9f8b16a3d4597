"""Reads MLflow's database store in SQLite, the default of its server and of newer clients."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import (
    NOT_ENDED,
    ForeignModel,
    ForeignRun,
    MetricSeries,
    add_point,
    list_files,
    new_series,
    newest_metrics,
)
from runyard.exchange.mlflow_folder import PARENT, SOURCE, STATUS_BY_NAME, local_path, run_files
from runyard.wire.exchange import ImportedDataset, ImportedMetric, ImportModel

_MAGIC = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def runs(path: Path) -> Iterator[ForeignRun | ForeignModel]:
    """Yield the runs and logged models that are not deleted, in the order of their start; a model after its run."""
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
            models = [_model(path, database, model) for model in _model_rows(database, row["run_uuid"])]
            yield _run(path, database, row, models)
            yield from models
        for model in _model_rows(database, None):
            yield _model(path, database, model)


def _run(path: Path, database: sqlite3.Connection, row: sqlite3.Row, models: list[ForeignModel]) -> ForeignRun:
    run_id = row["run_uuid"]
    tags = dict(database.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run_id,)).fetchall())
    artifacts = local_path(row["artifact_uri"] or "", path.parent)
    return ForeignRun(
        run_id=run_id,
        experiment=row["experiment"],
        name=row["name"] or tags.get("mlflow.runName") or run_id,
        status=STATUS_BY_NAME.get(row["status"], NOT_ENDED),
        created_at=(row["start_time"] or 0) / 1000,
        ended_at=row["end_time"] / 1000 if row["end_time"] is not None else None,
        source=SOURCE,
        series=lambda: _read_series(path, run_id),
        parent_id=tags.get(PARENT),
        user=row["user_id"] or "",
        tags=tags,
        params=dict(database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run_id,)).fetchall()),
        files=[*(list_files(artifacts) if artifacts else []), *run_files(models)],
        datasets=_datasets(database, run_id),
        model_outputs={row["destination_id"]: row["step"] for row in _links(database, run_id, "RUN_OUTPUT")},
        model_inputs=[row["destination_id"] for row in _links(database, run_id, "RUN_INPUT")],
    )


def _read_series(path: Path, run_id: str) -> Iterator[MetricSeries]:
    """Read the metrics. SQLite has no NaN: MLflow stores 0 and a flag, and the largest number for infinity."""
    with closing(_open(path)) as database:
        query = (
            # in the order of logging: a repeated import adds what follows the last point
            "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY key, rowid"
        )
        series: MetricSeries | None = None
        for key, step, timestamp, value, is_nan in database.execute(query, (run_id,)):
            if series is None or series.name != key:
                if series is not None:
                    yield series
                series = new_series(key)
            number = math.nan if is_nan else _number(value)
            add_point(series, step, timestamp / 1000, number)
        if series is not None:
            yield series


def _number(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= 1.79e308 else value


def _datasets(database: sqlite3.Connection, run_id: str) -> list[ImportedDataset]:
    rows = _optional_rows(
        database,
        "SELECT i.input_uuid, d.* FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id"
        " WHERE i.source_type = 'DATASET' AND i.destination_type = 'RUN' AND i.destination_id = ? ORDER BY i.rowid",
        run_id,
    )
    return [
        ImportedDataset(
            name=row["name"],
            digest=row["digest"],
            source_type=row["dataset_source_type"] or "",
            source=row["dataset_source"] or "",
            schema=row["dataset_schema"] or "",
            profile=row["dataset_profile"] or "",
            tags=_pairs(database, "SELECT name, value FROM input_tags WHERE input_uuid = ?", row["input_uuid"]),
        )
        for row in rows
    ]


def _links(database: sqlite3.Connection, run_id: str, kind: str) -> list[sqlite3.Row]:
    query = "SELECT destination_id, step FROM inputs WHERE source_id = ? AND source_type = ? ORDER BY rowid"
    return _optional_rows(database, query, run_id, kind)


def _model_rows(database: sqlite3.Connection, run_id: str | None) -> list[sqlite3.Row]:
    """Return the models of a run; without a run, those of no run."""
    query = (
        "SELECT m.*, e.name AS experiment FROM logged_models m JOIN experiments e ON e.experiment_id = m.experiment_id"
        " WHERE m.source_run_id IS ? AND m.lifecycle_stage = 'active' AND e.lifecycle_stage = 'active'"
        " ORDER BY m.creation_timestamp_ms, m.model_id"
    )
    return _optional_rows(database, query, run_id)


def _model(path: Path, database: sqlite3.Connection, row: sqlite3.Row) -> ForeignModel:
    model_id = row["model_id"]
    artifacts = local_path(row["artifact_location"] or "", path.parent)
    metrics = _optional_rows(database, "SELECT * FROM logged_model_metrics WHERE model_id = ? ORDER BY rowid", model_id)
    record = ImportModel(
        model_id=model_id,
        experiment=row["experiment"],
        name=row["name"],
        status=row["status"],
        source=SOURCE,
        created_at=row["creation_timestamp_ms"] / 1000,
        changed_at=row["last_updated_timestamp_ms"] / 1000,
        model_type=row["model_type"] or "",
        run_id=row["source_run_id"],
        params=_pairs(database, "SELECT param_key, param_value FROM logged_model_params WHERE model_id = ?", model_id),
        tags=_pairs(database, "SELECT tag_key, tag_value FROM logged_model_tags WHERE model_id = ?", model_id),
        metrics=newest_metrics(
            ImportedMetric(
                name=metric["metric_name"],
                step=metric["metric_step"],
                time=metric["metric_timestamp_ms"] / 1000,
                value=math.nan if metric["metric_value"] is None else _number(metric["metric_value"]),
                run_id=metric["run_id"] or "",
                dataset_name=metric["dataset_name"] or "",
                dataset_digest=metric["dataset_digest"] or "",
            )
            for metric in metrics
        ),
    )
    return ForeignModel(record, list_files(artifacts) if artifacts else [])


def _pairs(database: sqlite3.Connection, query: str, owner: str) -> dict[str, str]:
    return {key: value or "" for key, value in _optional_rows(database, query, owner)}


def _optional_rows(database: sqlite3.Connection, query: str, *values: Any) -> list[sqlite3.Row]:
    """Return nothing if a table or column is missing: datasets exist since MLflow 2.4, logged models since MLflow 3."""
    try:
        return database.execute(query, values).fetchall()
    except sqlite3.OperationalError:
        return []


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database
