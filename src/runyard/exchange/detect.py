"""From a path and the name of a program to the runs that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import FoundRun

SOURCES = ("mlflow", "tensorboard", "wandb-offline")


def find_runs(source: str, path: Path) -> Iterator[FoundRun]:
    """Read one by one, so that a folder of any size can be imported."""
    if source not in SOURCES:
        raise UserErrorException(f"nothing is known of {source!r}", hint=f"imports come from {', '.join(SOURCES)}")
    if not path.exists():
        raise UserErrorException(f"there is no {str(path)!r} to import from")
    if source == "mlflow":
        return _mlflow(path)
    if source == "tensorboard":
        return _tensorboard(path)
    from runyard.exchange import wandb_offline

    return wandb_offline.runs(path)


def _mlflow(path: Path) -> Iterator[FoundRun]:
    """`mlruns`, `mlflow.db`, or the folder that holds one of them: as MLflow itself leaves it in a project."""
    from runyard.exchange import mlflow_database, mlflow_folder

    if path.is_file():
        if not mlflow_database.is_database(path):
            raise UserErrorException(f"{path} is no SQLite database", hint="give mlflow.db, or the folder mlruns")
        return mlflow_database.runs(path)
    places = [path / "mlflow.db", path / "mlruns"]
    if mlflow_folder.is_file_store(path):
        return mlflow_folder.runs(path)
    if places[0].is_file():
        return mlflow_database.runs(places[0])
    if places[1].is_dir():
        return mlflow_folder.runs(places[1])
    raise UserErrorException(
        f"there are no runs of MLflow in {path}",
        hint="give mlflow.db, the folder mlruns, or the folder that holds them",
    )


def _tensorboard(path: Path) -> Iterator[FoundRun]:
    from runyard.exchange import tensorboard
    from runyard.wire.event_records import is_event_file

    if path.is_file():
        raise UserErrorException(f"{path} is a file", hint=f"give its folder: {path.parent}")
    if not any(is_event_file(found.name) for found in path.rglob("*")):
        raise UserErrorException(
            f"there are no event files of TensorBoard below {path}", hint="their names contain 'tfevents'"
        )
    return tensorboard.runs(path)
