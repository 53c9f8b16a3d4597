"""Runs of the yard in the shapes of MLflow's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.constants import (
    ACTIVE,
    NAME,
    PARENT,
    SOURCE,
    STAGE,
    USER,
    id_of,
    milliseconds,
    number,
    pairs,
)
from runyard.spec.parameters import parse_parameters
from runyard.store.documents import INPUTS, Documents
from runyard.store.run_search import STATUS_CODES
from runyard.store.runs import RunRecord
from runyard.tracking.external_points import Point, last_numbers, last_points
from runyard.wire.points import NO_STEP

Shape = dict[str, Any]


def runs(conductor: Conductor, records: Sequence[RunRecord]) -> list[Shape]:
    """As a search gives them: the steps of the last values are left out, which nobody looks at there."""
    run_ids = [record.run_id for record in records]
    rooms = conductor.rooms
    numbers = last_numbers(rooms.database, run_ids)
    metrics = {run_id: {name: Point(NO_STEP, 0.0, v) for name, v in some.items()} for run_id, some in numbers.items()}
    return _shapes(conductor, records, metrics)


def run(conductor: Conductor, record: RunRecord) -> Shape:
    points = last_points(conductor.rooms.database, record.run_id)
    return _shapes(conductor, [record], {record.run_id: points})[0]


def info(record: RunRecord, tags: Mapping[str, str | None]) -> Shape:
    started = record.started_at or record.created_at
    shape: Shape = {
        "run_id": record.run_id,
        "run_uuid": record.run_id,
        "run_name": tags.get(NAME) or record.name or record.run_id,
        "experiment_id": id_of(record.experiment),
        "user_id": record.submitted_by or "",
        "status": STATUS_CODES.get(record.life.state, "RUNNING"),
        "start_time": milliseconds(started),
        "artifact_uri": f"mlflow-artifacts:/{record.run_id}",
        "lifecycle_stage": tags.get(STAGE) or ACTIVE,
    }
    if record.ended_at is not None:
        shape["end_time"] = milliseconds(record.ended_at)
    return shape


def metric(name: str, point: Point, index: int = 0) -> Shape:
    """A point that was logged without a step has the number that it came as."""
    return {
        "key": name,
        "value": number(point.value),
        "timestamp": milliseconds(point.time),
        "step": index if point.step == NO_STEP else point.step,
    }


def _shapes(
    conductor: Conductor, records: Sequence[RunRecord], metrics: Mapping[str, Mapping[str, Point]]
) -> list[Shape]:
    store = conductor.rooms.runs
    run_ids = [record.run_id for record in records]
    labels = store.labels(run_ids)
    params = store.params_of(run_ids)
    logged = {document.id: document.content for document in Documents(conductor.rooms.database).of(INPUTS, run_ids)}
    shapes = []
    for record in records:
        tags = labels[record.run_id][0]
        content = logged.get(record.run_id, {})
        shapes.append(
            {
                "info": info(record, tags),
                "data": {
                    "metrics": [metric(name, point) for name, point in metrics[record.run_id].items()],
                    "params": pairs(params[record.run_id]),
                    "tags": pairs(_tags(record, tags)),
                },
                "inputs": {
                    "dataset_inputs": [
                        {"dataset": one["dataset"], "tags": one.get("tags", [])} for one in content.get("datasets", ())
                    ],
                    "model_inputs": content.get("model_inputs", []),
                },
                "outputs": {"model_outputs": content.get("model_outputs", [])},
            }
        )
    return shapes


def _tags(record: RunRecord, tags: Mapping[str, str | None]) -> dict[str, str | None]:
    """With those that MLflow's own server would have: a run that was submitted to the yard has none of them."""
    found = {key: value for key, value in tags.items() if key != STAGE}
    found.setdefault(NAME, record.name or record.run_id)
    if record.parent_id:
        found.setdefault(PARENT, record.parent_id)
    if record.submitted_by:
        found.setdefault(USER, record.submitted_by)
    if record.spec:
        found.setdefault(SOURCE, str(record.spec.get("script") or ""))
        found.setdefault("mlflow.source.type", "JOB")
    return found


def arguments_of(record: RunRecord) -> dict[str, str]:
    return parse_parameters((record.spec or {}).get("arguments") or ())
