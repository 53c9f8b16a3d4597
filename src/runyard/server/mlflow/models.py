"""Logged models of MLflow 3: a document each, with files that belong to their run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import inf, isnan
from typing import Any

from runyard import clock
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, limits
from runyard.server.mlflow.constants import from_pairs, milliseconds, to_experiment_id, to_pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, MlflowError, integer_field, invalid_value, require
from runyard.store.documents import MODEL, Document, Documents

Fields = dict[str, Any]
_STATUS_NUMBERS = {"1": "LOGGED_MODEL_PENDING", "2": "LOGGED_MODEL_READY", "3": "LOGGED_MODEL_UPLOAD_FAILED"}


def create(conductor: Conductor, fields: Fields) -> Any:
    experiment = experiments.by_id(conductor, require(fields, "experiment_id"))
    limits.check_model_name(fields.get("name", ""))
    experiments.check_active(experiment)
    run_id = fields.get("source_run_id") or None
    if run_id:
        conductor.components.runs.load(run_id)
    model_id = f"m-{os.urandom(16).hex()}"
    content: Fields = {
        "name": fields.get("name") or f"model-{model_id[2:10]}",
        "model_type": fields.get("model_type") or "",
        "run_id": run_id,
        "status": "LOGGED_MODEL_PENDING",
        "params": from_pairs(fields.get("params")),
        "tags": from_pairs(fields.get("tags")),
        "metrics": [],
        "changed_at": clock.now(),
    }
    if experiment.artifact_location:
        content["artifact_uri"] = f"{experiment.artifact_location}/models/{model_id}/artifacts"
    document = Documents(conductor.components.database).change(MODEL, model_id, experiment.name, lambda _: content)
    return {"model": to_json(document)}


def get(conductor: Conductor, fields: Fields) -> Any:
    allow_deleted = str(fields.get("allow_deleted")).lower() == "true"
    return {"model": to_json(_load(conductor, fields, allow_deleted))}


def finalize(conductor: Conductor, fields: Fields) -> Any:
    text = require(fields, "status")
    status = _STATUS_NUMBERS.get(text, text)
    if status not in _STATUS_NUMBERS.values():
        raise invalid_value("status", text, f"expected {', '.join(_STATUS_NUMBERS.values())}")
    return {"model": to_json(_change(conductor, fields, lambda content: {**content, "status": status}))}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _change(conductor, fields, lambda content: {**content, "deleted": True})
    return {}


def set_tags(conductor: Conductor, fields: Fields) -> Any:
    tags = from_pairs(fields.get("tags"))
    document = _change(conductor, fields, lambda content: {**content, "tags": {**content["tags"], **tags}})
    return {"model": to_json(document)}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    tag_key = require(fields, "tag_key")

    def remove(content: Fields) -> Fields:
        if tag_key not in content["tags"]:
            raise MlflowError(DOES_NOT_EXIST, f"No tag with key {tag_key!r} found for model {fields['model_id']!r}.")
        return {**content, "tags": {key: value for key, value in content["tags"].items() if key != tag_key}}

    return {"model": to_json(_change(conductor, fields, remove))}


def log_params(conductor: Conductor, fields: Fields) -> Any:
    params = from_pairs(fields.get("params"))
    _change(conductor, fields, lambda content: {**content, "params": {**content["params"], **params}})
    return {}


def add_metrics(conductor: Conductor, run_id: str, metrics: Sequence[Fields]) -> None:
    """Add metrics that were logged for a model to the model; they also belong to its run."""
    by_model: dict[str, list[Fields]] = {}
    for metric in metrics:
        by_model.setdefault(str(metric["model_id"]), []).append({**metric, "run_id": run_id})
    for model_id, added in by_model.items():
        if Documents(conductor.components.database).get(MODEL, model_id) is None:
            continue  # a model of another server; the run has the metric nevertheless

        def merge(content: Fields, added: list[Fields] = added) -> Fields:
            newest: dict[tuple[Any, ...], Fields] = {}
            for metric in [*content["metrics"], *added]:
                other = newest.setdefault(_metric_key(metric), metric)
                newest[_metric_key(metric)] = max(other, metric, key=_recency)
            return {**content, "metrics": list(newest.values())}

        _change(conductor, {"model_id": model_id}, merge)


def location(document: Document) -> tuple[str, str]:
    """The owner and folder of the model's files: its run, or the model itself if it has no run."""
    run_id = document.content.get("run_id")
    return (run_id, f"models/{document.id}") if run_id else (document.id, "")


def _metric_key(metric: Fields) -> tuple[Any, ...]:
    return metric.get("key"), metric.get("dataset_name"), metric.get("dataset_digest")


def _recency(metric: Fields) -> tuple[int, int, float]:
    """The order of points as in a run: by step, time and value."""
    value = float(metric["value"])
    return integer_field(metric, "step", 0), integer_field(metric, "timestamp", 0), -inf if isnan(value) else value


def _load(conductor: Conductor, fields: Fields, allow_deleted: bool = False) -> Document:
    model_id = require(fields, "model_id")
    document = Documents(conductor.components.database).get(MODEL, model_id)
    if document is None or (document.content.get("deleted") and not allow_deleted):
        reason = "" if document is None else " It was deleted."
        raise MlflowError(DOES_NOT_EXIST, f"Logged model with ID {model_id!r} not found.{reason}")
    return document


def _change(conductor: Conductor, fields: Fields, change: Callable[[Fields], Fields]) -> Document:
    document = _load(conductor, fields, allow_deleted=True)

    def apply(content: Fields) -> Fields:
        return {**change(content), "changed_at": clock.now()}

    return Documents(conductor.components.database).change(MODEL, document.id, document.owner, apply)


def to_json(document: Document) -> dict[str, Any]:
    content = document.content
    owner, folder = location(document)
    return {
        "info": {
            "model_id": document.id,
            "experiment_id": to_experiment_id(document.owner),
            "name": content["name"],
            "creation_timestamp_ms": milliseconds(document.created_at),
            "last_updated_timestamp_ms": milliseconds(content["changed_at"]),
            "artifact_uri": content.get("artifact_uri") or f"mlflow-artifacts:/{owner}/{folder}".rstrip("/"),
            "status": content["status"],
            "model_type": content["model_type"],
            "source_run_id": content["run_id"] or "",
            "tags": to_pairs(content["tags"]),
        },
        "data": {"params": to_pairs(content["params"]), "metrics": content["metrics"]},
    }
