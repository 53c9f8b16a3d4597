"""Runs in MLflow's JSON format."""

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
    milliseconds,
    to_experiment_id,
    to_json_number,
    to_pairs,
)
from runyard.spec.parameters import parse_parameters
from runyard.store.documents import INPUTS, Documents
from runyard.store.run_search import ARTIFACT_URI, MLFLOW_STATUS
from runyard.store.runs import RunRecord
from runyard.tracking.external_points import Point, last_points, last_points_of_runs
from runyard.wire.points import NO_STEP

JsonObject = dict[str, Any]


def runs(conductor: Conductor, records: Sequence[RunRecord]) -> list[JsonObject]:
    metrics = last_points_of_runs(conductor.components.database, [record.run_id for record in records])
    return _serialize(conductor, records, metrics)


def run(conductor: Conductor, record: RunRecord) -> JsonObject:
    points = last_points(conductor.components.database, record.run_id)
    return _serialize(conductor, [record], {record.run_id: points})[0]


def info(record: RunRecord, tags: Mapping[str, str | None], properties: Mapping[str, str | None]) -> JsonObject:
    started = record.created_at if record.started_at is None else record.started_at
    shape: JsonObject = {
        "run_id": record.run_id,
        "run_uuid": record.run_id,
        "run_name": tags.get(NAME) or record.name or record.run_id,
        "experiment_id": to_experiment_id(record.experiment),
        "user_id": record.submitted_by or "",
        "status": MLFLOW_STATUS.get(record.life.state, "RUNNING"),
        "start_time": milliseconds(started),
        "artifact_uri": properties.get(ARTIFACT_URI) or f"mlflow-artifacts:/{record.run_id}",
        "lifecycle_stage": tags.get(STAGE) or ACTIVE,
    }
    if record.ended_at is not None:
        shape["end_time"] = milliseconds(record.ended_at)
    return shape


def metric(name: str, point: Point, index: int = 0) -> JsonObject:
    """A point that was logged without a step gets ``index`` as its step."""
    return {
        "key": name,
        "value": to_json_number(point.value),
        "timestamp": milliseconds(point.time),
        "step": index if point.step == NO_STEP else point.step,
    }


def _serialize(
    conductor: Conductor, records: Sequence[RunRecord], metrics: Mapping[str, Mapping[str, Point]]
) -> list[JsonObject]:
    store = conductor.components.runs
    run_ids = [record.run_id for record in records]
    labels = store.labels(run_ids)
    params = store.params(run_ids)
    logged = {
        document.id: document.content for document in Documents(conductor.components.database).find(INPUTS, run_ids)
    }
    results = []
    for record in records:
        tags, properties = labels[record.run_id]
        content = logged.get(record.run_id, {})
        results.append(
            {
                "info": info(record, tags, properties),
                "data": {
                    "metrics": [metric(name, point) for name, point in metrics[record.run_id].items()],
                    "params": to_pairs(params[record.run_id]),
                    "tags": to_pairs(_tags(record, tags)),
                },
                "inputs": {
                    "dataset_inputs": [
                        {"dataset": item["dataset"], "tags": item.get("tags", [])}
                        for item in content.get("datasets", ())
                    ],
                    "model_inputs": content.get("model_inputs", []),
                },
                "outputs": {"model_outputs": content.get("model_outputs", [])},
            }
        )
    return results


def _tags(record: RunRecord, tags: Mapping[str, str | None]) -> dict[str, str | None]:
    """Add the tags that MLflow's own client sets, which a run that was submitted to the yard lacks."""
    all_tags = {key: value for key, value in tags.items() if key != STAGE}
    has_client_tags = NAME in tags and not record.spec  # an MLflow client created it
    all_tags.setdefault(NAME, record.name or record.run_id)
    if record.parent_id:
        all_tags.setdefault(PARENT, record.parent_id)
    if record.submitted_by and not has_client_tags:
        all_tags.setdefault(USER, record.submitted_by)
    if record.spec:
        all_tags.setdefault(SOURCE, str(record.spec.get("script") or ""))
        all_tags.setdefault("mlflow.source.type", "JOB")
    return all_tags


def script_arguments(record: RunRecord) -> dict[str, str]:
    return parse_parameters((record.spec or {}).get("arguments") or ())
