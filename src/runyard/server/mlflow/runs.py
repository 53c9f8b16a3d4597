"""MLflow's endpoints for runs, metrics, parameters and tags."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from runyard import clock
from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, Life
from runyard.orchestrator.client_runs import CREATED_BY
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.resume import resume
from runyard.server.auth import CALLING_RUN
from runyard.server.mlflow import experiments, models, serializers
from runyard.server.mlflow.constants import DEFAULT_ID, DELETED, NAME, PARENT, STAGE, USER, from_pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError, integer_field, require
from runyard.store.documents import INPUTS, Documents
from runyard.store.run_search import MLFLOW_STATUS
from runyard.store.runs import RunRecord
from runyard.tracking.external_points import Point, add_points
from runyard.tracking.ingest import ingest

Fields = dict[str, Any]
_CONTEXT = "mlflow.data.context"
_MODELS = "mlflow.log-model.history"


def create(conductor: Conductor, fields: Fields) -> Any:
    experiment = experiments.by_id(conductor, str(fields.get("experiment_id") or DEFAULT_ID))
    if experiment.stage == DELETED:
        raise MlflowError(INVALID, f"experiment {experiment.title!r} is deleted; restore it first")
    tags: dict[str, str | None] = {**from_pairs(fields.get("tags"))}
    creator = fields.get(CALLING_RUN)
    if creator:  # everything that the script of a run logs is in this run or its children
        tags.setdefault(PARENT, creator)
    started_at = integer_field(fields, "start_time", 0) / 1000 or clock.now()
    suffix = os.urandom(4).hex()
    name = str(fields.get("run_name") or tags.get(NAME) or f"run-{suffix}")
    tags[NAME] = name
    parent = _parent(conductor, tags.get(PARENT))
    run_id = f"{experiment.name[:200]}_{int(started_at)}_{suffix}"
    record = RunRecord(
        run_id=run_id,
        experiment=experiment.name,
        life=Life(managed=False),
        created_at=started_at,
        started_at=started_at,
        parent_id=parent.run_id if parent else None,
        root_id=parent.root_id if parent else run_id,
        name=name,
        target="local",
        submitted_by=str(fields.get("user_id") or tags.get(USER) or ""),
    )
    properties: dict[str, str | None] = {CREATED_BY: creator} if creator else {}
    return {"run": serializers.run(conductor, conductor.admit(record, on.Opened(), tags, properties))}


def get(conductor: Conductor, fields: Fields) -> Any:
    run_id = require(fields, "run_id", "run_uuid")
    record = conductor.components.runs.load(run_id)
    ingest_journals(conductor, [run_id])
    return {"run": serializers.run(conductor, record)}


def update(conductor: Conductor, fields: Fields) -> Any:
    """Update status and name. The status of a submitted run is ignored: the end of its process decides."""
    run_id = require(fields, "run_id", "run_uuid")
    record = conductor.components.runs.load(run_id)
    status = str(fields.get("status") or "").upper()
    if status in (_RUNNING, *_ENDS) and not record.life.managed:
        if status != MLFLOW_STATUS[record.life.state]:  # a request that is sent again does not change the end
            resume(conductor, run_id)
        if status in _ENDS:
            conductor.post(run_id, _ENDS[status])
    name = fields.get("run_name")
    if name:
        conductor.components.runs.rename(run_id, str(name))
        _tag(conductor, run_id, {NAME: str(name)})
    tags = conductor.components.runs.labels([run_id])[run_id][0]
    return {"run_info": serializers.info(conductor.components.runs.load(run_id), tags)}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, require(fields, "run_id"), {STAGE: DELETED})
    return {}


def restore(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, require(fields, "run_id"), {}, remove=[STAGE])
    return {}


def log_metric(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, require(fields, "run_id", "run_uuid"), metrics=[fields])
    return {}


def log_parameter(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, require(fields, "run_id", "run_uuid"), params={require(fields, "key"): _text(fields)})
    return {}


def set_tag(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, require(fields, "run_id", "run_uuid"), tags={require(fields, "key"): _text(fields)})
    return {}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    run_id, key = require(fields, "run_id"), require(fields, "key")
    if not conductor.components.runs.remove_tag(run_id, key):
        raise MlflowError(DOES_NOT_EXIST, f"run {run_id} has no tag {key!r}")
    conductor.notifier.notify(run_id)
    return {}


def log_batch(conductor: Conductor, fields: Fields) -> Any:
    _log(
        conductor,
        require(fields, "run_id"),
        metrics=fields.get("metrics") or [],
        params=from_pairs(fields.get("params")),
        tags=from_pairs(fields.get("tags")),
    )
    return {}


def log_inputs(conductor: Conductor, fields: Fields) -> Any:
    run_id = require(fields, "run_id")
    conductor.components.runs.load(run_id)
    datasets = [_dataset_input(item) for item in fields.get("datasets") or ()]

    def add(content: dict[str, Any]) -> dict[str, Any]:
        return {
            **content,
            "datasets": _merge(content.get("datasets", []), datasets),
            "model_inputs": _merge(content.get("model_inputs", []), fields.get("models") or []),
        }

    Documents(conductor.components.database).change(INPUTS, run_id, run_id, add)
    return {}


def log_outputs(conductor: Conductor, fields: Fields) -> Any:
    run_id = require(fields, "run_id")
    conductor.components.runs.load(run_id)

    def add(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "model_outputs": _merge(content.get("model_outputs", []), fields.get("models") or [])}

    Documents(conductor.components.database).change(INPUTS, run_id, run_id, add)
    return {}


def log_model(conductor: Conductor, fields: Fields) -> Any:
    """Record the models of a run in a tag, for clients before MLflow 3."""
    run_id = require(fields, "run_id")
    try:
        model = json.loads(require(fields, "model_json"))
    except ValueError as error:
        raise MlflowError(INVALID, f"model_json is not valid JSON: {error}") from None
    conductor.components.runs.change_tag(run_id, _MODELS, lambda history: _with_model(history, model))
    conductor.notifier.notify(run_id)
    return {}


def ingest_journals(conductor: Conductor, run_ids: Iterable[str]) -> None:
    """Include the values that scripts logged with `run.log` a moment ago."""
    for run_id in run_ids:
        ingest(conductor.components.database, run_id, conductor.components.folder(run_id).journal)


_RUNNING = "RUNNING"
_ENDS: dict[str, on.Event] = {
    "FINISHED": on.MarkedComplete(),
    "FAILED": on.MarkedFailed(End(EndReason.MARKED_FAILED, "its MLflow client reported a failure")),
    "KILLED": on.CancelRequested(),
}


def _parent(conductor: Conductor, run_id: str | None) -> RunRecord | None:
    """Load the parent; None if it does not exist, in which case it is only a tag."""
    try:
        return conductor.components.runs.load(run_id) if run_id else None
    except RunNotFound:
        return None


def _log(
    conductor: Conductor,
    run_id: str,
    metrics: Sequence[Fields] = (),
    params: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> None:
    record = conductor.components.runs.load(run_id)
    points: dict[str, list[Point]] = {}
    for metric in metrics:
        points.setdefault(require(metric, "key"), []).append(_point(metric))
    if params:
        # script arguments are parameters, which a script may log in another format
        conductor.components.runs.add_params(run_id, params, serializers.script_arguments(record))
    if tags:
        _tag(conductor, run_id, tags)
    if metrics:
        add_points(conductor.components.database, run_id, points)
        models.add_metrics(conductor, run_id, [metric for metric in metrics if metric.get("model_id")])
        conductor.notifier.notify(run_id)


def _point(fields: Fields) -> Point:
    try:
        value = float(fields["value"])
    except (KeyError, TypeError, ValueError):
        raise MlflowError(
            INVALID, f"metric {fields.get('key')!r}: expected a number, got {fields.get('value')!r}"
        ) from None
    step = integer_field(fields, "step", 0)
    if not -(2**63) < step < 2**63:
        raise MlflowError(INVALID, f"step {step} of metric {fields.get('key')!r} does not fit 64 bits")
    return Point(step, integer_field(fields, "timestamp", 0) / 1000 or clock.now(), value)


def _tag(conductor: Conductor, run_id: str, tags: dict[str, str], remove: list[str] | None = None) -> None:
    conductor.components.runs.set_tags(run_id, tags, remove or [])
    conductor.notifier.notify(run_id)


def _text(fields: Fields) -> str:
    return str(fields.get("value") if fields.get("value") is not None else "")


def _with_model(history: str | None, model: Any) -> str:
    try:
        return json.dumps([*json.loads(history or "[]"), model])
    except (ValueError, TypeError):  # a client set the tag
        raise MlflowError(INVALID, f"the value of tag {_MODELS!r} is not a JSON list: {history!r}") from None


def _dataset_input(fields: Fields) -> Fields:
    dataset = fields.get("dataset")
    if not isinstance(dataset, dict) or not {"name", "digest"} <= set(dataset):
        raise MlflowError(INVALID, "an input of a run needs a dataset with a name and a digest")
    context = next((tag.get("value") for tag in fields.get("tags") or () if tag["key"] == _CONTEXT), None)
    return {"dataset": dataset, "tags": fields.get("tags") or [], "context": context}


def _merge(stored: list[Fields], items: list[Fields]) -> list[Fields]:
    return stored + [item for item in items if item not in stored]
