"""Registered models and their versions in MLflow's JSON format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runyard.models.registry import Models
from runyard.server.mlflow.constants import milliseconds, to_pairs
from runyard.server.mlflow.registry import stages
from runyard.store.model_names import ModelName
from runyard.store.models import Alias, ModelRecord

JsonObject = dict[str, Any]


def registered_model(name: ModelName, versions: Iterable[ModelRecord], aliases: Sequence[Alias]) -> JsonObject:
    """``versions`` are those of the name, newest first."""
    latest = latest_by_stage(versions).values()
    return {
        "name": name.title,
        "creation_timestamp": milliseconds(name.created_at),
        "last_updated_timestamp": milliseconds(name.changed_at),
        "description": name.description or "",
        "latest_versions": [model_version(name, model, aliases) for model in latest],
        "tags": to_pairs(name.tags),
        "aliases": [{"alias": alias.alias, "version": str(alias.version)} for alias in aliases],
    }


def model_version(name: ModelName, model: ModelRecord, aliases: Sequence[Alias]) -> JsonObject:
    content: JsonObject = {
        "name": name.title,
        "version": str(model.version),
        "creation_timestamp": milliseconds(model.created_at),
        "last_updated_timestamp": milliseconds(model.changed_at),
        "user_id": model.created_by or "",
        "current_stage": stages.to_mlflow(model.stage),
        "description": model.description or "",
        "source": source(name, model),
        "run_id": model.run_id or "",
        "run_link": model.details.get("run_link") or "",
        "status": "READY",
        "status_message": "",
        "tags": to_pairs(model.tags),
        "aliases": [alias.alias for alias in aliases if alias.version == model.version],
    }
    if model.details.get("model_id"):
        content["model_id"] = model.details["model_id"]
    return content


def source(name: ModelName, model: ModelRecord) -> str:
    """The URI that a client registered; a version that was registered in the yard is its own source."""
    return str(model.details.get("source") or f"mlflow-artifacts:/models/{name.name}/{model.version}")


def download_uri(models: Models, model: ModelRecord) -> str:
    """The folder of the version: if it consists of one folder, that folder, which has the file MLmodel."""
    uri = f"mlflow-artifacts:/models/{model.name}/{model.version}"
    paths = [file.path for file in models.files(model.name, model.version)]
    folders = {path.partition("/")[0] for path in paths}
    if len(folders) == 1 and all("/" in path for path in paths):
        return f"{uri}/{folders.pop()}"
    return uri


def latest_by_stage(versions: Iterable[ModelRecord]) -> dict[str, ModelRecord]:
    latest: dict[str, ModelRecord] = {}
    for model in versions:
        latest.setdefault(stages.to_mlflow(model.stage), model)
    return latest
