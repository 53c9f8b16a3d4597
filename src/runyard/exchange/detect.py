"""Finds the runs of a tracking system in a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import ForeignModel, ForeignRun

SOURCES = ("mlflow", "tensorboard", "wandb-offline")


def find_runs(source: str, path: Path) -> Iterator[ForeignRun | ForeignModel]:
    """Yield the runs, and MLflow's logged models, one by one, so that a folder of any size can be imported."""
    if source not in SOURCES:
        raise UserErrorException(f"source must be one of {', '.join(SOURCES)}, got {source!r}")
    if not path.exists():
        raise UserErrorException(f"{str(path)!r} does not exist")
    if source == "mlflow":
        return _mlflow(path)
    if source == "tensorboard":
        return _tensorboard(path)
    from runyard.exchange import wandb_offline

    return wandb_offline.runs(path)


def _mlflow(path: Path) -> Iterator[ForeignRun | ForeignModel]:
    """Accept `mlruns`, `mlflow.db`, or the folder that contains one of them."""
    from runyard.exchange import mlflow_database, mlflow_folder

    if path.is_file():
        if not mlflow_database.is_database(path):
            raise UserErrorException(f"{path} is not an SQLite database", hint="pass mlflow.db, or the folder mlruns")
        return mlflow_database.runs(path)
    if mlflow_folder.is_file_store(path):
        return mlflow_folder.runs(path)
    if (path / "mlflow.db").is_file():
        return mlflow_database.runs(path / "mlflow.db")
    if (path / "mlruns").is_dir():
        return mlflow_folder.runs(path / "mlruns")
    raise UserErrorException(
        f"no MLflow runs in {path}", hint="pass mlflow.db, the folder mlruns, or the folder that contains them"
    )


def _tensorboard(path: Path) -> Iterator[ForeignRun]:
    from runyard.exchange import tensorboard
    from runyard.wire.event_records import is_event_file

    if path.is_file():
        raise UserErrorException(f"{path} is a file", hint=f"pass its folder: {path.parent}")
    if not any(is_event_file(file.name) for file in path.rglob("*")):
        raise UserErrorException(f"no TensorBoard event files below {path}", hint="their names contain 'tfevents'")
    return tensorboard.runs(path)
