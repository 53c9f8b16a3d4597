"""Search for runs, and metric histories."""

from __future__ import annotations

from typing import Any

import numpy as np

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters, serializers
from runyard.server.mlflow.constants import DELETED, STAGE, to_experiment_name
from runyard.server.mlflow.errors import INVALID, MlflowError, integer_field, invalid_value, require
from runyard.server.mlflow.runs import ingest_journals
from runyard.store.run_search import TAG, Comparison, condition, ordering
from runyard.tracking.external_points import Point
from runyard.tracking.metrics import read_points
from runyard.wire.points import NO_STEP

Fields = dict[str, Any]
_DEFAULT_RUNS, _MAX_RUNS = 1000, 50_000
_MAX_HISTORIES = 100


def runs(conductor: Conductor, fields: Fields) -> Any:
    # unknown ids are not an error: as in MLflow's own server, such an experiment has no runs
    names = [to_experiment_name(experiment_id) for experiment_id in fields.get("experiment_ids") or ()]
    comparisons = filters.parse(fields.get("filter"), filters.RUNS)
    orders = filters.parse_orders(fields.get("order_by") or (), filters.RUNS)
    offset = experiments.page_offset(fields)
    limit = integer_field(fields, "max_results", _DEFAULT_RUNS)
    if not 0 < limit <= _MAX_RUNS:
        raise invalid_value("max_results", limit, f"must be between 1 and {_MAX_RUNS:,}")
    conditions = [condition(comparison) for comparison in comparisons]
    stages = experiments.lifecycle_stages(fields.get("run_view_type"))
    if len(stages) == 1:
        deleted = condition(Comparison(TAG, STAGE, "=", DELETED))
        conditions.append(deleted if DELETED in stages else ~deleted)
    ingest_journals(conductor, list(conductor.live))
    records = conductor.components.runs.search(names, conditions, ordering(orders), offset, limit + 1)
    page: dict[str, Any] = {"runs": serializers.runs(conductor, records[:limit])}
    if len(records) > limit:
        page["next_page_token"] = str(offset + limit)
    return page


def history(conductor: Conductor, fields: Fields) -> Any:
    run_id, name = require(fields, "run_id", "run_uuid"), require(fields, "metric_key")
    conductor.components.runs.load(run_id)
    ingest_journals(conductor, [run_id])
    after, limit = experiments.page_offset(fields), integer_field(fields, "max_results", 0) or None
    metrics = _history(conductor, run_id, name, after, limit)
    page: dict[str, Any] = {"metrics": metrics}
    if limit is not None and len(metrics) == limit:
        page["next_page_token"] = str(after + limit)
    return page


def histories(conductor: Conductor, fields: Fields) -> Any:
    """Histories of several runs within a range of steps; each is thinned evenly to at most ``max_results`` points."""
    value = fields.get("run_ids") or fields.get("run_id") or []
    run_ids = [value] if isinstance(value, str) else list(value)
    if not 0 < len(run_ids) <= _MAX_HISTORIES:
        raise MlflowError(INVALID, f"expected 1 to {_MAX_HISTORIES} run_ids, got {len(run_ids)}")
    name = require(fields, "metric_key")
    first, last = integer_field(fields, "start_step", -(2**63)), integer_field(fields, "end_step", 2**63)
    limit = integer_field(fields, "max_results", 25_000)
    metrics = []
    for run_id in run_ids:
        conductor.components.runs.load(run_id)
        ingest_journals(conductor, [run_id])
        points = [point for point in _history(conductor, run_id, name) if first <= point["step"] <= last]
        stride = -(-len(points) // max(limit, 1))
        points = points if stride <= 1 else [*points[:-1:stride], points[-1]]
        metrics += [{**point, "run_id": run_id} for point in points]
    return {"metrics": metrics}


def _history(conductor: Conductor, run_id: str, name: str, after: int = 0, limit: int | None = None) -> list[Fields]:
    """Sort by time, then by step, as MLflow's own server does.

    Clients that log in background threads, such as that of Transformers, send points in arbitrary order.
    """
    points = read_points(conductor.components.database, run_id, name)
    steps = np.where(points.steps == NO_STEP, np.arange(len(points)), points.steps)
    order = np.lexsort((steps, np.round(points.times * 1000)))[after : None if limit is None else after + limit]
    columns = (column[order].tolist() for column in (points.steps, points.times, points.values))
    return [serializers.metric(name, Point(*point), index) for index, point in zip(order.tolist(), zip(*columns))]
