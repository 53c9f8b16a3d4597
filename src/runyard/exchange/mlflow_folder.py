"""MLflow's file store: a folder `mlruns` of small files."""

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
    Curve,
    FoundRun,
    add,
    files_below,
    new_curve,
)

_STATUS = {3: COMPLETED, 4: FAILED, 5: CANCELED}
STATUS_BY_NAME = {"FINISHED": COMPLETED, "FAILED": FAILED, "KILLED": CANCELED}
PARENT = "mlflow.parentRunId"


def runs(root: Path) -> Iterator[FoundRun]:
    """Those that were not deleted, oldest experiment first."""
    for folder in sorted(path for path in root.iterdir() if (path / "meta.yaml").is_file()):
        experiment = _meta(folder)
        if experiment.get("lifecycle_stage", "active") != "active":
            continue
        models = _model_files(folder / "models")
        for run in sorted(path for path in folder.iterdir() if (path / "meta.yaml").is_file()):
            about = _meta(run)
            if "run_id" in about and about.get("lifecycle_stage", "active") == "active":
                yield _run(run, about, str(experiment.get("name") or folder.name), models)


def is_file_store(folder: Path) -> bool:
    return any((path / "meta.yaml").is_file() for path in folder.iterdir() if path.is_dir())


def local_path(uri: str, beside: Path) -> Path | None:
    """Where on this machine the files of an artifact URI are, if they can be here at all."""
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        path = Path(unquote(parsed.path))
        return path if path.is_absolute() else beside / path
    if parsed.scheme == "mlflow-artifacts":  # kept by a server, by default beside its database
        return beside / "mlartifacts" / unquote(parsed.path).lstrip("/")
    return None


def _run(folder: Path, about: dict[str, Any], experiment: str, models: dict[str, list[tuple[str, Path]]]) -> FoundRun:
    tags = _texts(folder / "tags")
    run_id = str(about["run_id"])
    artifacts = folder / "artifacts"
    if not artifacts.is_dir():
        artifacts = local_path(str(about.get("artifact_uri") or ""), folder.parent.parent.parent) or artifacts
    return FoundRun(
        run_id=run_id,
        experiment=experiment,
        name=str(about.get("run_name") or tags.get("mlflow.runName") or run_id),
        status=_status(about.get("status")),
        created_at=float(about.get("start_time") or 0) / 1000,
        ended_at=float(about["end_time"]) / 1000 if about.get("end_time") else None,
        source="mlflow",
        curves=lambda: _curves(folder / "metrics"),
        parent_id=tags.get(PARENT),
        user=str(about.get("user_id") or ""),
        tags=tags,
        params=_texts(folder / "params"),
        files=[*files_below(artifacts), *models.get(run_id, [])],
    )


def _status(given: Any) -> str:
    return STATUS_BY_NAME.get(given, NOT_ENDED) if isinstance(given, str) else _STATUS.get(given, NOT_ENDED)


def _curves(folder: Path) -> Iterator[Curve]:
    """A line for each point: milliseconds, value, step, and for some what it was measured on."""
    for name, path in files_below(folder):
        curve = new_curve(name)
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                words = line.split()
                if not words:
                    continue
                try:
                    add(curve, int(words[2]) if len(words) > 2 else 0, int(words[0]) / 1000, float(words[1]))
                except (ValueError, IndexError):
                    raise UserErrorException(
                        f"{path}, line {number} is no point of a metric: {line.strip()[:80]!r}",
                        hint="repair or remove that line, and import again",
                    ) from None
        yield curve


def _texts(folder: Path) -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in files_below(folder)}


def _model_files(folder: Path) -> dict[str, list[tuple[str, Path]]]:
    """By the run that logged them; the yard keeps the files of models among those of their run."""
    found: dict[str, list[tuple[str, Path]]] = {}
    for model in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (model / "meta.yaml").is_file():
            run_id = _meta(model).get("source_run_id")
            found.setdefault(str(run_id), []).extend(files_below(model / "artifacts", f"models/{model.name}/"))
    return found


def _meta(folder: Path) -> dict[str, Any]:
    import yaml

    path = folder / "meta.yaml"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise UserErrorException(f"{path} cannot be read: {error}", hint="is this a copy that broke off?") from error
    return found if isinstance(found, dict) else {}
