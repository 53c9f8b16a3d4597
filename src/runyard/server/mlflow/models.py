"""Logged models of MLflow 3: a document each, with files that belong to their run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import inf, isnan
from typing import Any

from runyard import clock
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters, limits
from runyard.server.mlflow.constants import from_pairs, milliseconds, to_experiment_id, to_pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, MlflowError, integer_field, require
from runyard.store.documents import MODEL, Document, Documents
from runyard.store.run_search import ATTRIBUTE, METRIC, PARAM, TAG

Fields = dict[str, Any]
_TIMES = {
    "creation_time": "creation_timestamp_ms",
    "creation_timestamp": "creation_timestamp_ms",
    "last_updated_time": "last_updated_timestamp_ms",
    "last_updated_timestamp": "last_updated_timestamp_ms",
}


def create(conductor: Conductor, fields: Fields) -> Any:
    experiment = experiments.by_id(conductor, require(fields, "experiment_id"))
    limits.check_model_name(fields.get("name", ""))
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
    document = Documents(conductor.components.database).change(MODEL, model_id, experiment.name, lambda _: content)
    return {"model": _to_json(document)}


def get(conductor: Conductor, fields: Fields) -> Any:
    document = _load(conductor, fields)
    if document.content.get("deleted") and str(fields.get("allow_deleted")).lower() != "true":
        raise MlflowError(DOES_NOT_EXIST, f"the logged model {document.id!r} was deleted")
    return {"model": _to_json(document)}


def finalize(conductor: Conductor, fields: Fields) -> Any:
    status = str(fields.get("status") or "LOGGED_MODEL_READY")
    return {"model": _to_json(_change(conductor, fields, lambda content: {**content, "status": status}))}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _change(conductor, fields, lambda content: {**content, "deleted": True})
    return {}


def set_tags(conductor: Conductor, fields: Fields) -> Any:
    tags = from_pairs(fields.get("tags"))
    document = _change(conductor, fields, lambda content: {**content, "tags": {**content["tags"], **tags}})
    return {"model": _to_json(document)}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    tag_key = require(fields, "tag_key")

    def remove(content: Fields) -> Fields:
        return {**content, "tags": {key: value for key, value in content["tags"].items() if key != tag_key}}

    return {"model": _to_json(_change(conductor, fields, remove))}


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


def search(conductor: Conductor, fields: Fields) -> Any:
    names = [experiments.by_id(conductor, id).name for id in fields.get("experiment_ids") or ()]
    comparisons = filters.parse(fields.get("filter"), filters.MODELS)
    results = []
    for document in Documents(conductor.components.database).find(MODEL, names):
        if not document.content.get("deleted") and filters.matches(comparisons, _values(document)):
            results.append(document)
    results.sort(key=lambda document: -document.created_at)
    for order in reversed(fields.get("order_by") or []):
        order = order if isinstance(order, dict) else {"field_name": order}
        field = filters.parse_order(require(order, "field_name"), filters.MODELS)
        ascending = order.get("ascending", True) in (True, "true")
        values = {document.id: _values(document)(field.kind, field.key) for document in results}
        results.sort(key=lambda document, values=values: values[document.id] or 0, reverse=not ascending)  # type: ignore[misc]
        results.sort(key=lambda document, values=values: values[document.id] is None)  # type: ignore[misc]
    return experiments.page("models", [_to_json(document) for document in results], fields, 50)


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


def _values(document: Document) -> Callable[[str, str], Any]:
    attributes, content = _to_json(document)["info"], document.content

    def value(kind: str, key: str) -> Any:
        if kind == ATTRIBUTE:
            return attributes.get(_TIMES.get(key, key))
        if kind == METRIC:
            return next((float(metric["value"]) for metric in content["metrics"] if metric["key"] == key), None)
        return {PARAM: content["params"], TAG: content["tags"]}.get(kind, {}).get(key)

    return value


def _load(conductor: Conductor, fields: Fields) -> Document:
    model_id = require(fields, "model_id")
    document = Documents(conductor.components.database).get(MODEL, model_id)
    if document is None:
        raise MlflowError(DOES_NOT_EXIST, f"no logged model {model_id!r}")
    return document


def _change(conductor: Conductor, fields: Fields, change: Callable[[Fields], Fields]) -> Document:
    document = _load(conductor, fields)

    def apply(content: Fields) -> Fields:
        return {**change(content), "changed_at": clock.now()}

    return Documents(conductor.components.database).change(MODEL, document.id, document.owner, apply)


def _to_json(document: Document) -> dict[str, Any]:
    content = document.content
    owner, folder = location(document)
    return {
        "info": {
            "model_id": document.id,
            "experiment_id": to_experiment_id(document.owner),
            "name": content["name"],
            "creation_timestamp_ms": milliseconds(document.created_at),
            "last_updated_timestamp_ms": milliseconds(content["changed_at"]),
            "artifact_uri": f"mlflow-artifacts:/{owner}/{folder}".rstrip("/"),
            "status": content["status"],
            "model_type": content["model_type"],
            "source_run_id": content["run_id"] or "",
            "tags": to_pairs(content["tags"]),
        },
        "data": {"params": to_pairs(content["params"]), "metrics": content["metrics"]},
    }
