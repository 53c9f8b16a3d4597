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
from runyard.server.mlflow import experiments, limits, models, serializers
from runyard.server.mlflow.constants import DEFAULT_ID, DELETED, NAME, PARENT, STAGE, USER, from_pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, MlflowError, integer_field, invalid_value, require
from runyard.store.documents import INPUTS, Documents
from runyard.store.run_search import ARTIFACT_URI, MLFLOW_STATUS
from runyard.store.runs import RunRecord
from runyard.tracking.external_points import Point, add_points
from runyard.tracking.ingest import ingest
from runyard.wire.points import NO_STEP

Fields = dict[str, Any]
_CONTEXT = "mlflow.data.context"
_MODELS = "mlflow.log-model.history"
_MODEL_FIELDS = {"artifact_path", "flavors", "utc_time_created", "run_id"}


def create(conductor: Conductor, fields: Fields) -> Any:
    experiment = experiments.by_id(conductor, str(fields.get("experiment_id") or DEFAULT_ID))
    experiments.check_active(experiment)
    tags: dict[str, str | None] = {**from_pairs(fields.get("tags"))}
    creator = fields.get(CALLING_RUN)
    if creator:  # everything that the script of a run logs is in this run or its children
        tags.setdefault(PARENT, creator)
    started_at = _start_time(fields)
    suffix = os.urandom(4).hex()
    name = str(fields.get("run_name") or tags.get(NAME) or f"run-{suffix}")
    if tags.get(NAME, name) != name:
        raise MlflowError(
            INVALID,
            f"Both 'run_name' argument and '{NAME}' tag are specified, but with different values "
            f"(run_name='{name}', {NAME}='{tags[NAME]}').",
        )
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
    if experiment.artifact_location:
        properties[ARTIFACT_URI] = f"{experiment.artifact_location}/{run_id}/artifacts"
    return {"run": serializers.run(conductor, conductor.admit(record, on.Opened(), tags, properties))}


def get(conductor: Conductor, fields: Fields) -> Any:
    run_id = require(fields, "run_id", "run_uuid")
    record = conductor.components.runs.load(run_id)
    ingest_journals(conductor, [run_id])
    return {"run": serializers.run(conductor, record)}


def update(conductor: Conductor, fields: Fields) -> Any:
    """Update status, end time and name.

    The status and end time of a submitted run are ignored: the end of its process decides.
    """
    record = _load_active(conductor, fields)
    run_id, status = record.run_id, _status(fields)
    if status and not record.life.managed:
        if status != MLFLOW_STATUS[record.life.state]:  # a request that is sent again does not change the end
            resume(conductor, run_id)
        if status in _ENDS:
            conductor.post(run_id, _ENDS[status])
    if "end_time" in fields and status != _RUNNING and not record.life.managed:  # clients resume with the last end time
        end_time = integer_field(fields, "end_time", 0)
        if not conductor.components.runs.set_end_time(run_id, end_time / 1000):
            raise invalid_value("end_time", end_time, f"run {run_id} has not ended; send a status such as FINISHED")
        conductor.notifier.notify(run_id)
    name = fields.get("run_name")
    if name:
        conductor.components.runs.rename(run_id, str(name))
        _tag(conductor, run_id, {NAME: str(name)})
    labels = conductor.components.runs.labels([run_id])[run_id]
    return {"run_info": serializers.info(conductor.components.runs.load(run_id), *labels)}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, require(fields, "run_id"), {STAGE: DELETED})
    return {}


def restore(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, require(fields, "run_id"), {}, remove=[STAGE])
    return {}


def log_metric(conductor: Conductor, fields: Fields) -> Any:
    for name in ("key", "value", "timestamp"):
        require(fields, name)
    limits.check_metric(fields)
    _log(conductor, fields, metrics=[fields])
    return {}


def log_parameter(conductor: Conductor, fields: Fields) -> Any:
    key = require(fields, "key")
    limits.check_key(key)
    _log(conductor, fields, params={key: str(fields.get("value", ""))})
    return {}


def set_tag(conductor: Conductor, fields: Fields) -> Any:
    key = require(fields, "key")
    limits.check_key(key)
    _log(conductor, fields, tags={key: str(fields.get("value", ""))})
    return {}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    key = require(fields, "key")
    run_id = _load_active(conductor, fields).run_id
    if not conductor.components.runs.remove_tag(run_id, key):
        raise MlflowError(DOES_NOT_EXIST, f"No tag with name: {key} in run with id {run_id}")
    conductor.notifier.notify(run_id)
    return {}


def log_batch(conductor: Conductor, fields: Fields) -> Any:
    limits.check_run_id(require(fields, "run_id"))
    metrics, params, tags = (fields.get(name) or [] for name in ("metrics", "params", "tags"))
    limits.check_batch(metrics, params, tags)
    _log(conductor, fields, metrics=metrics, params=from_pairs(params), tags=from_pairs(tags))
    return {}


def log_inputs(conductor: Conductor, fields: Fields) -> Any:
    for index, item in enumerate(fields.get("datasets") or ()):
        limits.check_dataset_input(item, f"datasets[{index}]")
    run_id = _load_active(conductor, fields).run_id
    datasets = [_dataset_input(item) for item in fields.get("datasets") or ()]

    def add(content: dict[str, Any]) -> dict[str, Any]:
        return {
            **content,
            "datasets": _merge_datasets([*content.get("datasets", []), *datasets]),
            "model_inputs": _merge(content.get("model_inputs", []), fields.get("models") or []),
        }

    Documents(conductor.components.database).change(INPUTS, run_id, run_id, add)
    return {}


def log_outputs(conductor: Conductor, fields: Fields) -> Any:
    run_id = _load_active(conductor, fields).run_id

    def add(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "model_outputs": _merge(content.get("model_outputs", []), fields.get("models") or [])}

    Documents(conductor.components.database).change(INPUTS, run_id, run_id, add)
    return {}


def log_model(conductor: Conductor, fields: Fields) -> Any:
    """Record the models of a run in a tag, for clients before MLflow 3."""
    try:
        model = json.loads(require(fields, "model_json"))
    except ValueError as error:
        raise MlflowError(INVALID, f"model_json is not valid JSON: {error}") from None
    missing = sorted(_MODEL_FIELDS - set(model)) if isinstance(model, dict) else sorted(_MODEL_FIELDS)
    if missing:
        raise MlflowError(INVALID, f"Model json is missing mandatory fields: {', '.join(missing)}")
    run_id = _load_active(conductor, fields).run_id
    conductor.components.runs.change_tag(run_id, _MODELS, lambda history: _with_model(history, model))
    conductor.notifier.notify(run_id)
    return {}


def ingest_journals(conductor: Conductor, run_ids: Iterable[str]) -> None:
    """Include the values that scripts logged with `run.log` a moment ago."""
    for run_id in run_ids:
        ingest(conductor.components.database, run_id, conductor.components.folder(run_id).journal)


_RUNNING = "RUNNING"
_STATUS_NUMBERS = {"1": _RUNNING, "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
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


def _load_active(conductor: Conductor, fields: Fields) -> RunRecord:
    """Load the run of a request; a deleted run cannot be changed."""
    run_id = require(fields, "run_id", "run_uuid")
    record = conductor.components.runs.load(run_id)
    if conductor.components.runs.labels([run_id])[run_id][0].get(STAGE) == DELETED:
        raise MlflowError(
            INVALID,
            f"The run {run_id} must be in the 'active' state. Current state is deleted.",
            hint="restore it first",
        )
    return record


def _log(
    conductor: Conductor,
    fields: Fields,
    metrics: Sequence[Fields] = (),
    params: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> None:
    record = _load_active(conductor, fields)
    run_id = record.run_id
    points: dict[str, list[Point]] = {}
    for metric in metrics:
        points.setdefault(require(metric, "key"), []).append(_point(metric))
    if params:
        # script arguments are parameters, which a script may log in another format
        conductor.components.runs.add_params(run_id, params, serializers.script_arguments(record))
    if tags:
        _tag(conductor, run_id, tags)
        if tags.get(NAME):
            conductor.components.runs.rename(run_id, tags[NAME])
    if metrics:
        add_points(conductor.components.database, run_id, points)
        models.add_metrics(conductor, run_id, [metric for metric in metrics if metric.get("model_id")])
        conductor.notifier.notify(run_id)


def _point(fields: Fields) -> Point:
    step = integer_field(fields, "step", 0)
    if step == NO_STEP:
        raise invalid_value("step", step, "the yard reserves this number for values without a step")
    return Point(step, integer_field(fields, "timestamp", 0) / 1000, float(fields["value"]))


def _start_time(fields: Fields) -> float:
    if "start_time" not in fields:
        return clock.now()
    start_time = integer_field(fields, "start_time", 0)
    if start_time < 0:
        raise invalid_value("start_time", start_time, "expected milliseconds since 1970, not negative")
    return start_time / 1000


def _status(fields: Fields) -> str:
    """The status in a request, which is a name or a number of protobuf; empty if there is none."""
    text = str(fields.get("status") or "").upper()
    status = _STATUS_NUMBERS.get(text, text)
    if status not in ("", _RUNNING, *_ENDS):
        raise invalid_value("status", text, f"expected {', '.join((_RUNNING, *_ENDS))}")
    return status


def _tag(conductor: Conductor, run_id: str, tags: dict[str, str], remove: list[str] | None = None) -> None:
    conductor.components.runs.set_tags(run_id, tags, remove or [])
    conductor.notifier.notify(run_id)


def _with_model(history: str | None, model: Any) -> str:
    try:
        return json.dumps([*json.loads(history or "[]"), model])
    except (ValueError, TypeError):  # a client set the tag
        raise MlflowError(INVALID, f"the value of tag {_MODELS!r} is not a JSON list: {history!r}") from None


def _dataset_input(fields: Fields) -> Fields:
    context = next((tag.get("value") for tag in fields.get("tags") or () if tag["key"] == _CONTEXT), None)
    return {"dataset": fields["dataset"], "tags": fields.get("tags") or [], "context": context}


def _merge_datasets(items: list[Fields]) -> list[Fields]:
    """A run uses a dataset once; as in MLflow, the tags of its first use remain."""
    merged: dict[tuple[str, str], Fields] = {}
    for item in items:
        merged.setdefault((item["dataset"]["name"], item["dataset"]["digest"]), item)
    return list(merged.values())


def _merge(stored: list[Fields], items: list[Fields]) -> list[Fields]:
    return stored + [item for item in items if item not in stored]
