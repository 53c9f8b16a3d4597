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
    ForeignModel,
    ForeignRun,
    MetricSeries,
    add_point,
    list_files,
    new_series,
    newest_metrics,
)
from runyard.wire.exchange import ImportedDataset, ImportedMetric, ImportModel

SOURCE = "mlflow"
_STATUS = {3: COMPLETED, 4: FAILED, 5: CANCELED}
STATUS_BY_NAME = {"FINISHED": COMPLETED, "FAILED": FAILED, "KILLED": CANCELED}
PARENT = "mlflow.parentRunId"


def runs(root: Path) -> Iterator[ForeignRun | ForeignModel]:
    """Yield the runs and logged models that are not deleted, oldest experiment first; a model after its run."""
    for folder in sorted(path for path in root.iterdir() if (path / "meta.yaml").is_file()):
        experiment = _meta(folder)
        if experiment.get("lifecycle_stage", "active") != "active":
            continue
        name = str(experiment.get("name") or folder.name)
        models = list(_models(folder / "models", name))
        for run in sorted(path for path in folder.iterdir() if (path / "meta.yaml").is_file()):
            meta = _meta(run)
            if "run_id" in meta and meta.get("lifecycle_stage", "active") == "active":
                run_models = [model for model in models if model.record.run_id == str(meta["run_id"])]
                yield _run(run, meta, name, run_models)
                yield from run_models
        yield from (model for model in models if model.record.run_id is None)


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


def _run(folder: Path, meta: dict[str, Any], experiment: str, models: list[ForeignModel]) -> ForeignRun:
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
        ended_at=float(meta["end_time"]) / 1000 if meta.get("end_time") is not None else None,
        source=SOURCE,
        series=lambda: _read_series(folder / "metrics"),
        parent_id=tags.get(PARENT),
        user=str(meta.get("user_id") or ""),
        tags=tags,
        params=_texts(folder / "params"),
        files=[*list_files(artifacts), *run_files(models)],
        datasets=list(_datasets(folder)),
        model_outputs=_model_outputs(folder / "outputs"),
    )


def run_files(models: list[ForeignModel]) -> Iterator[tuple[str, Path]]:
    """Yield the files of a run's models under their names in the run."""
    for model in models:
        yield from ((f"models/{model.record.model_id}/{name}", path) for name, path in model.files)


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
                    raise _invalid_line(path, number, line) from None
        yield series


def _invalid_line(path: Path, number: int, line: str) -> UserErrorException:
    return UserErrorException(
        f"{path}, line {number} is not a metric value: {line.strip()[:80]!r}",
        hint="repair or remove that line and import again",
    )


def _texts(folder: Path) -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in list_files(folder)}


def _models(folder: Path, experiment: str) -> Iterator[ForeignModel]:
    for model in _folders(folder):
        meta = _meta(model)
        if meta.get("lifecycle_stage", "active") != "active":
            continue
        artifacts = model / "artifacts"
        if not artifacts.is_dir():
            location = str(meta.get("artifact_location") or "")
            artifacts = local_path(location, folder.parent.parent.parent) or artifacts
        record = ImportModel(
            model_id=model.name,
            experiment=experiment,
            name=str(meta.get("name") or model.name),
            status=int(meta.get("status") or 0),
            source=SOURCE,
            created_at=float(meta.get("creation_timestamp") or 0) / 1000,
            changed_at=float(meta.get("last_updated_timestamp") or 0) / 1000,
            model_type=str(meta.get("model_type") or ""),
            run_id=str(meta["source_run_id"]) if meta.get("source_run_id") else None,
            params=_texts(model / "params"),
            tags=_texts(model / "tags"),
            metrics=newest_metrics(_model_metrics(model / "metrics")),
        )
        yield ForeignModel(record, list_files(artifacts))


def _model_metrics(folder: Path) -> Iterator[ImportedMetric]:
    """Read one file per metric; each line contains milliseconds, value, step, run, and sometimes the dataset."""
    for name, path in list_files(folder):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if not words:
                continue
            try:
                yield ImportedMetric(name, int(words[2]), int(words[0]) / 1000, float(words[1]), *words[3:6])
            except (ValueError, IndexError):
                raise _invalid_line(path, number, line) from None


def _datasets(run: Path) -> Iterator[ImportedDataset]:
    for folder in _folders(run / "inputs"):
        link = _meta(folder)
        dataset = run.parent / "datasets" / str(link.get("source_id"))
        if link.get("source_type") == "DATASET" and (dataset / "meta.yaml").is_file():
            meta = {key: str(value) for key, value in _meta(dataset).items() if value is not None}
            yield ImportedDataset(
                name=meta.get("name", ""),
                digest=meta.get("digest", ""),
                source_type=meta.get("source_type", ""),
                source=meta.get("source", ""),
                schema=meta.get("schema", ""),
                profile=meta.get("profile", ""),
                tags={str(key): str(value) for key, value in (link.get("tags") or {}).items()},
            )


def _model_outputs(folder: Path) -> dict[str, int]:
    links = [_meta(path) for path in _folders(folder)]
    return {str(link.get("destination_id")): int(link.get("step") or 0) for link in links}


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if (path / "meta.yaml").is_file()) if folder.is_dir() else []


def _meta(folder: Path) -> dict[str, Any]:
    import yaml

    path = folder / "meta.yaml"
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise UserErrorException(f"cannot read {path}: {error}", hint="the copy may be incomplete") from error
    return content if isinstance(content, dict) else {}
