"""Stores the logged models and dataset inputs of runs that were imported from another MLflow."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.constants import milliseconds, to_json_number, to_pairs
from runyard.spec.names import RUN_ID, to_experiment_name
from runyard.store.documents import INPUTS, MODEL, Document, Documents, put_document
from runyard.store.experiments import ExperimentStore
from runyard.wire.exchange import (
    IMPORTED_FROM,
    ImportedDataset,
    ImportedMetric,
    ImportModel,
    ImportModelResult,
    ImportRun,
)

Fields = dict[str, Any]
_CONTEXT = "mlflow.data.context"
_STATUSES = {1: "LOGGED_MODEL_PENDING", 2: "LOGGED_MODEL_READY", 3: "LOGGED_MODEL_UPLOAD_FAILED"}


def store_inputs(conductor: Conductor, request: ImportRun) -> bool:
    """Store the datasets and models that a run used and logged; False if all of them are known."""
    new_items = {
        "datasets": [_dataset(dataset) for dataset in request.datasets],
        "model_inputs": [{"model_id": model_id} for model_id in request.model_inputs],
        "model_outputs": [{"model_id": model_id, "step": step} for model_id, step in request.model_outputs.items()],
    }
    if not any(new_items.values()):
        return False
    documents = Documents(conductor.components.database)
    before = documents.get(INPUTS, request.run_id)

    def add(content: Fields) -> Fields:
        merged = dict(content)
        for key, items in new_items.items():
            stored_items = content.get(key, [])
            merged[key] = stored_items + [item for item in items if item not in stored_items]
        return merged

    document = documents.change(INPUTS, request.run_id, request.run_id, add)
    return before is None or document.content != before.content


def import_model(conductor: Conductor, request: ImportModel) -> ImportModelResult:
    """Import a logged model. Repeating it adds what is new, and keeps changes that users have made since."""
    if not RUN_ID.fullmatch(request.model_id):
        raise UserErrorException(f"invalid model id {request.model_id!r}")
    if not all(map(isfinite, (request.created_at, request.changed_at, *(metric.time for metric in request.metrics)))):
        raise UserErrorException(f"the times of logged model {request.model_id} must be finite numbers")
    components = conductor.components
    documents = Documents(components.database)
    existing = documents.get(MODEL, request.model_id)
    content = _content(request)
    changed = False
    if existing is None:
        if request.run_id:
            components.runs.load(request.run_id)
        experiment = to_experiment_name(request.experiment)
        ExperimentStore(components.database).add(experiment, request.experiment)
        with components.database.write() as connection:
            put_document(connection, MODEL, Document(request.model_id, experiment, content, request.created_at))
    elif existing.content.get(IMPORTED_FROM) != request.source:
        raise UserErrorException(
            f"logged model {request.model_id} exists and was not imported from {request.source}",
            hint="import into another yard: RUNYARD_HOME=folder runyard import …",
        )
    else:
        document = documents.change(MODEL, existing.id, existing.owner, lambda stored: _merge(stored, content))
        changed = document.content != existing.content
    files = [] if request.run_id else components.artifacts.files(request.model_id)
    return ImportModelResult(
        request.model_id, existing is None, changed, {artifact.path: artifact.digest for artifact in files}
    )


def _content(request: ImportModel) -> Fields:
    return {
        "name": request.name,
        "model_type": request.model_type,
        "run_id": request.run_id,
        "status": _STATUSES.get(request.status, _STATUSES[1]),
        "params": dict(request.params),
        "tags": dict(request.tags),
        "metrics": [_metric(request.model_id, metric) for metric in request.metrics],
        "changed_at": request.changed_at,
        IMPORTED_FROM: request.source,
    }


def _merge(stored: Fields, content: Fields) -> Fields:
    """Add new labels, and take the status and metrics of a model that has continued."""
    return {
        **stored,
        "params": {**content["params"], **stored["params"]},
        "tags": {**content["tags"], **stored["tags"]},
        "status": content["status"],
        "metrics": content["metrics"],
        "changed_at": max(stored["changed_at"], content["changed_at"]),
    }


def _metric(model_id: str, metric: ImportedMetric) -> Fields:
    fields: Fields = {
        "key": metric.name,
        "value": to_json_number(metric.value),
        "timestamp": milliseconds(metric.time),
        "step": metric.step,
        "model_id": model_id,
        "run_id": metric.run_id,
    }
    if metric.dataset_name:
        fields |= {"dataset_name": metric.dataset_name, "dataset_digest": metric.dataset_digest}
    return fields


def _dataset(dataset: ImportedDataset) -> Fields:
    content = asdict(dataset)
    tags = content.pop("tags")
    described = {key: value for key, value in content.items() if value or key in ("name", "digest")}
    return {"dataset": described, "tags": to_pairs(tags), "context": tags.get(_CONTEXT)}
