"""Reads MLflow's file store, the folder `mlruns`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import (
    CANCELED,
    COMPLETED,
    FAILED,
    NOT_ENDED,
    ForeignRun,
    MetricSeries,
    add_point,
    list_files,
    new_series,
)

_STATUS = {3: COMPLETED, 4: FAILED, 5: CANCELED}
STATUS_BY_NAME = {"FINISHED": COMPLETED, "FAILED": FAILED, "KILLED": CANCELED}
PARENT = "mlflow.parentRunId"


def runs(root: Path) -> Iterator[ForeignRun]:
    """Yield the runs that are not deleted, oldest experiment first."""
    for folder in sorted(path for path in root.iterdir() if (path / "meta.yaml").is_file()):
        experiment = _meta(folder)
        if experiment.get("lifecycle_stage", "active") != "active":
            continue
        models = _model_files(folder / "models")
        for run in sorted(path for path in folder.iterdir() if (path / "meta.yaml").is_file()):
            meta = _meta(run)
            if "run_id" in meta and meta.get("lifecycle_stage", "active") == "active":
                yield _run(run, meta, str(experiment.get("name") or folder.name), models)


def is_file_store(folder: Path) -> bool:
    return any((path / "meta.yaml").is_file() for path in folder.iterdir() if path.is_dir())


def local_path(uri: str, base: Path) -> Path | None:
    """Return the local path of an artifact URI, or None if it refers to remote storage."""
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        path = Path(unquote(parsed.path))
        return path if path.is_absolute() else base / path
    if parsed.scheme == "mlflow-artifacts":  # stored by a server, by default next to its database
        return base / "mlartifacts" / unquote(parsed.path).lstrip("/")
    return None


def _run(folder: Path, meta: dict[str, Any], experiment: str, models: dict[str, list[tuple[str, Path]]]) -> ForeignRun:
    tags = _texts(folder / "tags")
    run_id = str(meta["run_id"])
    artifacts = folder / "artifacts"
    if not artifacts.is_dir():
        artifacts = local_path(str(meta.get("artifact_uri") or ""), folder.parent.parent.parent) or artifacts
    return ForeignRun(
        run_id=run_id,
        experiment=experiment,
        name=str(meta.get("run_name") or tags.get("mlflow.runName") or run_id),
        status=_status(meta.get("status")),
        created_at=float(meta.get("start_time") or 0) / 1000,
        ended_at=float(meta["end_time"]) / 1000 if meta.get("end_time") else None,
        source="mlflow",
        series=lambda: _read_series(folder / "metrics"),
        parent_id=tags.get(PARENT),
        user=str(meta.get("user_id") or ""),
        tags=tags,
        params=_texts(folder / "params"),
        files=[*list_files(artifacts), *models.get(run_id, [])],
    )


def _status(value: Any) -> str:
    return STATUS_BY_NAME.get(value, NOT_ENDED) if isinstance(value, str) else _STATUS.get(value, NOT_ENDED)


def _read_series(folder: Path) -> Iterator[MetricSeries]:
    """Read one file per metric; each line contains milliseconds, value, step, and sometimes the dataset."""
    for name, path in list_files(folder):
        series = new_series(name)
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                words = line.split()
                if not words:
                    continue
                try:
                    add_point(series, int(words[2]) if len(words) > 2 else 0, int(words[0]) / 1000, float(words[1]))
                except (ValueError, IndexError):
                    raise UserErrorException(
                        f"{path}, line {number} is not a metric value: {line.strip()[:80]!r}",
                        hint="repair or remove that line and import again",
                    ) from None
        yield series


def _texts(folder: Path) -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in list_files(folder)}


def _model_files(folder: Path) -> dict[str, list[tuple[str, Path]]]:
    """Return the files of logged models by run id; the yard stores them with the files of the run."""
    by_run: dict[str, list[tuple[str, Path]]] = {}
    for model in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (model / "meta.yaml").is_file():
            run_id = _meta(model).get("source_run_id")
            by_run.setdefault(str(run_id), []).extend(list_files(model / "artifacts", f"models/{model.name}/"))
    return by_run


def _meta(folder: Path) -> dict[str, Any]:
    import yaml

    path = folder / "meta.yaml"
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise UserErrorException(f"cannot read {path}: {error}", hint="the copy may be incomplete") from error
    return content if isinstance(content, dict) else {}
