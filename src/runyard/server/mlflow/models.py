"""Logged models of MLflow 3: a record each, and files that are their run's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from runyard import clock
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters
from runyard.server.mlflow.constants import id_of, milliseconds, of_pairs, pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, Fault, required
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
    experiment = experiments.by_id(conductor, required(fields, "experiment_id"))
    run_id = fields.get("source_run_id") or None
    if run_id:
        conductor.rooms.runs.load(run_id)
    model_id = f"m-{os.urandom(16).hex()}"
    content: Fields = {
        "name": fields.get("name") or f"model-{model_id[2:10]}",
        "model_type": fields.get("model_type") or "",
        "run_id": run_id,
        "status": "LOGGED_MODEL_PENDING",
        "params": of_pairs(fields.get("params")),
        "tags": of_pairs(fields.get("tags")),
        "metrics": [],
        "changed_at": clock.now(),
    }
    made = Documents(conductor.rooms.database).change(MODEL, model_id, experiment.name, lambda _: content)
    return {"model": _shape(made)}


def get(conductor: Conductor, fields: Fields) -> Any:
    found = _load(conductor, fields)
    if found.content.get("deleted") and str(fields.get("allow_deleted")).lower() != "true":
        raise Fault(DOES_NOT_EXIST, f"the logged model {found.id!r} was deleted")
    return {"model": _shape(found)}


def finalize(conductor: Conductor, fields: Fields) -> Any:
    status = str(fields.get("status") or "LOGGED_MODEL_READY")
    return {"model": _shape(_change(conductor, fields, lambda before: {**before, "status": status}))}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _change(conductor, fields, lambda before: {**before, "deleted": True})
    return {}


def set_tags(conductor: Conductor, fields: Fields) -> Any:
    tags = of_pairs(fields.get("tags"))
    changed = _change(conductor, fields, lambda before: {**before, "tags": {**before["tags"], **tags}})
    return {"model": _shape(changed)}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    gone = required(fields, "tag_key")

    def without(before: Fields) -> Fields:
        return {**before, "tags": {key: value for key, value in before["tags"].items() if key != gone}}

    return {"model": _shape(_change(conductor, fields, without))}


def log_params(conductor: Conductor, fields: Fields) -> Any:
    params = of_pairs(fields.get("params"))
    _change(conductor, fields, lambda before: {**before, "params": {**before["params"], **params}})
    return {}


def add_metrics(conductor: Conductor, run_id: str, metrics: Sequence[Fields]) -> None:
    """A metric that was logged for a model belongs to its run and to the model."""
    by_model: dict[str, list[Fields]] = {}
    for one in metrics:
        by_model.setdefault(str(one["model_id"]), []).append({**one, "run_id": run_id})
    for model_id, some in by_model.items():
        if Documents(conductor.rooms.database).get(MODEL, model_id) is None:
            continue  # of another server: the run has the metric all the same

        def joined(before: Fields, some: list[Fields] = some) -> Fields:
            newest = {_identity(one): one for one in [*before["metrics"], *some]}
            return {**before, "metrics": list(newest.values())}

        _change(conductor, {"model_id": model_id}, joined)


def search(conductor: Conductor, fields: Fields) -> Any:
    names = [experiments.by_id(conductor, one).name for one in fields.get("experiment_ids") or ()]
    asked = filters.parse(fields.get("filter"), filters.MODELS)
    found = []
    for document in Documents(conductor.rooms.database).of(MODEL, names):
        if not document.content.get("deleted") and filters.matches(asked, _values(document)):
            found.append(document)
    found.sort(key=lambda document: -document.created_at)
    for order in reversed(fields.get("order_by") or []):
        order = order if isinstance(order, dict) else {"field_name": order}
        asked_for = filters.parse_order(required(order, "field_name"), filters.MODELS)
        ascending = order.get("ascending", True) in (True, "true")
        values = {document.id: _values(document)(asked_for.kind, asked_for.key) for document in found}
        found.sort(key=lambda document, values=values: values[document.id] or 0, reverse=not ascending)  # type: ignore[misc]
        found.sort(key=lambda document, values=values: values[document.id] is None)  # type: ignore[misc]
    return experiments.page("models", [_shape(document) for document in found], fields, 50)


def location(document: Document) -> tuple[str, str]:
    """Whose files they are, and where among them: of the model's run; a model without a run has files of its own."""
    run_id = document.content.get("run_id")
    return (run_id, f"models/{document.id}") if run_id else (document.id, "")


def _identity(metric: Fields) -> tuple[Any, ...]:
    return metric.get("key"), metric.get("dataset_name"), metric.get("dataset_digest")


def _values(document: Document) -> Callable[[str, str], Any]:
    shape, content = _shape(document)["info"], document.content

    def value(kind: str, key: str) -> Any:
        if kind == ATTRIBUTE:
            return shape.get(_TIMES.get(key, key))
        if kind == METRIC:
            return next((float(one["value"]) for one in content["metrics"] if one["key"] == key), None)
        return {PARAM: content["params"], TAG: content["tags"]}.get(kind, {}).get(key)

    return value


def _load(conductor: Conductor, fields: Fields) -> Document:
    model_id = required(fields, "model_id")
    found = Documents(conductor.rooms.database).get(MODEL, model_id)
    if found is None:
        raise Fault(DOES_NOT_EXIST, f"there is no logged model {model_id!r}")
    return found


def _change(conductor: Conductor, fields: Fields, how: Callable[[Fields], Fields]) -> Document:
    known = _load(conductor, fields)

    def changed(before: Fields) -> Fields:
        return {**how(before), "changed_at": clock.now()}

    return Documents(conductor.rooms.database).change(MODEL, known.id, known.owner, changed)


def _shape(document: Document) -> dict[str, Any]:
    content = document.content
    owner, folder = location(document)
    return {
        "info": {
            "model_id": document.id,
            "experiment_id": id_of(document.owner),
            "name": content["name"],
            "creation_timestamp_ms": milliseconds(document.created_at),
            "last_updated_timestamp_ms": milliseconds(content["changed_at"]),
            "artifact_uri": f"mlflow-artifacts:/{owner}/{folder}".rstrip("/"),
            "status": content["status"],
            "model_type": content["model_type"],
            "source_run_id": content["run_id"] or "",
            "tags": pairs(content["tags"]),
        },
        "data": {"params": pairs(content["params"]), "metrics": content["metrics"]},
    }
