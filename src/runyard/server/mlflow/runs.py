"""Runs and what is logged to them, by MLflow's client."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from runyard import clock
from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, Life
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, models, serializers
from runyard.server.mlflow.constants import DEFAULT_ID, DELETED, NAME, PARENT, STAGE, USER, of_pairs
from runyard.server.mlflow.errors import DOES_NOT_EXIST, INVALID, Fault, required, whole
from runyard.store.documents import INPUTS, Documents
from runyard.store.runs import RunRecord
from runyard.tracking.external_points import Point, add_points
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_points

Fields = dict[str, Any]
_CONTEXT = "mlflow.data.context"
_MODELS = "mlflow.log-model.history"


def create(conductor: Conductor, fields: Fields) -> Any:
    experiment = experiments.by_id(conductor, str(fields.get("experiment_id") or DEFAULT_ID))
    if experiment.stage == DELETED:
        raise Fault(INVALID, f"experiment {experiment.title!r} is deleted; restore it first")
    tags: dict[str, str | None] = {**of_pairs(fields.get("tags"))}
    at = whole(fields, "start_time", 0) / 1000 or clock.now()
    own = os.urandom(4).hex()
    name = str(fields.get("run_name") or tags.get(NAME) or f"run-{own}")
    tags[NAME] = name
    parent = _parent(conductor, tags.get(PARENT))
    run_id = f"{experiment.name[:200]}_{int(at)}_{own}"
    record = RunRecord(
        run_id=run_id,
        experiment=experiment.name,
        life=Life(managed=False),
        created_at=at,
        started_at=at,
        parent_id=parent.run_id if parent else None,
        root_id=parent.root_id if parent else run_id,
        name=name,
        target="local",
        submitted_by=str(fields.get("user_id") or tags.get(USER) or ""),
    )
    return {"run": serializers.run(conductor, conductor.admit(record, on.Opened(), tags, {}))}


def get(conductor: Conductor, fields: Fields) -> Any:
    run_id = required(fields, "run_id", "run_uuid")
    record = conductor.rooms.runs.load(run_id)
    read_up(conductor, [run_id])
    return {"run": serializers.run(conductor, record)}


def update(conductor: Conductor, fields: Fields) -> Any:
    """The script of a submitted run may say that it has finished, as often as it likes: its own end decides."""
    run_id = required(fields, "run_id", "run_uuid")
    record = conductor.rooms.runs.load(run_id)
    event = _EVENTS.get(str(fields.get("status") or "").upper())
    if event is not None and not record.life.managed:
        conductor.post(run_id, event)
    name = fields.get("run_name")
    if name:
        conductor.rooms.runs.rename(run_id, str(name))
        _tag(conductor, run_id, {NAME: str(name)})
    tags = conductor.rooms.runs.labels([run_id])[run_id][0]
    return {"run_info": serializers.info(conductor.rooms.runs.load(run_id), tags)}


def delete(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, required(fields, "run_id"), {STAGE: DELETED})
    return {}


def restore(conductor: Conductor, fields: Fields) -> Any:
    _tag(conductor, required(fields, "run_id"), {}, remove=[STAGE])
    return {}


def log_metric(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, required(fields, "run_id", "run_uuid"), metrics=[fields])
    return {}


def log_parameter(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, required(fields, "run_id", "run_uuid"), params={required(fields, "key"): _text(fields)})
    return {}


def set_tag(conductor: Conductor, fields: Fields) -> Any:
    _log(conductor, required(fields, "run_id", "run_uuid"), tags={required(fields, "key"): _text(fields)})
    return {}


def delete_tag(conductor: Conductor, fields: Fields) -> Any:
    run_id, key = required(fields, "run_id"), required(fields, "key")
    conductor.rooms.runs.load(run_id)
    if key not in conductor.rooms.runs.labels([run_id])[run_id][0]:
        raise Fault(DOES_NOT_EXIST, f"run {run_id} has no tag {key!r}")
    _tag(conductor, run_id, {}, remove=[key])
    return {}


def log_batch(conductor: Conductor, fields: Fields) -> Any:
    _log(
        conductor,
        required(fields, "run_id"),
        metrics=fields.get("metrics") or [],
        params=of_pairs(fields.get("params")),
        tags=of_pairs(fields.get("tags")),
    )
    return {}


def log_inputs(conductor: Conductor, fields: Fields) -> Any:
    run_id = required(fields, "run_id")
    conductor.rooms.runs.load(run_id)
    coming = [_input(one) for one in fields.get("datasets") or ()]

    def added(before: dict[str, Any]) -> dict[str, Any]:
        known = before.get("datasets", [])
        return {
            **before,
            "datasets": known + [one for one in coming if one not in known],
            "model_inputs": _merged(before.get("model_inputs", []), fields.get("models") or []),
        }

    Documents(conductor.rooms.database).change(INPUTS, run_id, run_id, added)
    return {}


def log_outputs(conductor: Conductor, fields: Fields) -> Any:
    run_id = required(fields, "run_id")
    conductor.rooms.runs.load(run_id)

    def added(before: dict[str, Any]) -> dict[str, Any]:
        return {**before, "model_outputs": _merged(before.get("model_outputs", []), fields.get("models") or [])}

    Documents(conductor.rooms.database).change(INPUTS, run_id, run_id, added)
    return {}


def log_model(conductor: Conductor, fields: Fields) -> Any:
    """Clients before MLflow 3 say it in a tag what models a run has."""
    run_id = required(fields, "run_id")
    conductor.rooms.runs.load(run_id)
    told = json.loads(conductor.rooms.runs.labels([run_id])[run_id][0].get(_MODELS) or "[]")
    try:
        told.append(json.loads(required(fields, "model_json")))
    except ValueError as error:
        raise Fault(INVALID, f"model_json is no JSON: {error}") from None
    _tag(conductor, run_id, {_MODELS: json.dumps(told)})
    return {}


def read_up(conductor: Conductor, run_ids: Iterable[str]) -> None:
    """What a script logged a moment ago by `run.log` is in the answer too."""
    for run_id in run_ids:
        ingest(conductor.rooms.database, run_id, conductor.rooms.folder(run_id).journal)


_EVENTS: dict[str, on.Event] = {
    "FINISHED": on.MarkedComplete(),
    "FAILED": on.MarkedFailed(End(EndReason.MARKED_FAILED, "its MLflow client said that it failed")),
    "KILLED": on.CancelRequested(),
}


def _parent(conductor: Conductor, run_id: str | None) -> RunRecord | None:
    """A parent that is not here stays a tag."""
    try:
        return conductor.rooms.runs.load(run_id) if run_id else None
    except RunNotFound:
        return None


def _log(
    conductor: Conductor,
    run_id: str,
    metrics: Sequence[Fields] = (),
    params: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> None:
    record = conductor.rooms.runs.load(run_id)
    points: dict[str, list[Point]] = {}
    for one in metrics:
        name, point = required(one, "key"), _point(one)
        if not (one.get("model_id") and _is_known(conductor, run_id, name, point)):
            points.setdefault(name, []).append(point)
    if params:
        _check_params(conductor, record, params)
        conductor.rooms.runs.set_params(run_id, params)
    if tags:
        _tag(conductor, run_id, tags)
    if metrics:
        add_points(conductor.rooms.database, run_id, points)
        models.add_metrics(conductor, run_id, [one for one in metrics if one.get("model_id")])
        conductor.bell.ring(run_id)


def _point(fields: Fields) -> Point:
    try:
        value = float(fields["value"])
    except (KeyError, TypeError, ValueError):
        raise Fault(
            INVALID, f"the value of metric {fields.get('key')!r} is no number: {fields.get('value')!r}"
        ) from None
    step = whole(fields, "step", 0)
    if not -(2**63) < step < 2**63:
        raise Fault(INVALID, f"step {step} of metric {fields.get('key')!r} does not fit 64 bits")
    return Point(step, whole(fields, "timestamp", 0) / 1000 or clock.now(), value)


def _is_known(conductor: Conductor, run_id: str, name: str, point: Point) -> bool:
    """When a model is logged, the client says the metrics of its run once more, as the model's."""
    known = read_points(conductor.rooms.database, run_id, name)
    same = (known.steps == point.step) & (known.times == point.time) & (known.values == point.value)
    return bool(same.any())


def _check_params(conductor: Conductor, record: RunRecord, params: dict[str, str]) -> None:
    """MLflow's parameters are written once; but a script may write its own arguments in its own words."""
    known = conductor.rooms.runs.params_of([record.run_id])[record.run_id]
    arguments = serializers.arguments_of(record)
    for key, value in params.items():
        if known.get(key, value) != value and known[key] != arguments.get(key):
            raise Fault(
                INVALID,
                f"parameter {key!r} of run {record.run_id} is {known[key]!r} already and cannot become {value!r}",
                hint="parameters are written once; use a tag for what changes",
            )


def _tag(conductor: Conductor, run_id: str, tags: dict[str, str], remove: list[str] | None = None) -> None:
    conductor.rooms.runs.set_tags(run_id, tags, remove or [])
    conductor.bell.ring(run_id)


def _text(fields: Fields) -> str:
    return str(fields.get("value") if fields.get("value") is not None else "")


def _input(given: Fields) -> Fields:
    dataset = given.get("dataset")
    if not isinstance(dataset, dict) or not {"name", "digest"} <= set(dataset):
        raise Fault(INVALID, "an input of a run needs a dataset with a name and a digest")
    context = next((tag.get("value") for tag in given.get("tags") or () if tag["key"] == _CONTEXT), None)
    return {"dataset": dataset, "tags": given.get("tags") or [], "context": context}


def _merged(known: list[Fields], coming: list[Fields]) -> list[Fields]:
    return known + [one for one in coming if one not in known]
