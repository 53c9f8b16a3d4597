"""Searching runs, and the histories of their metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments, filters, serializers
from runyard.server.mlflow.constants import DEFAULT, DEFAULT_ID, DELETED, STAGE
from runyard.server.mlflow.errors import INVALID, Fault, required, whole
from runyard.server.mlflow.runs import read_up
from runyard.store.run_search import TAG, Comparison, condition, ordering
from runyard.tracking.external_points import Point
from runyard.tracking.metrics import read_points
from runyard.wire.points import NO_STEP

Fields = dict[str, Any]
_USUAL, _MOST = 1000, 50_000
_MOST_RUNS_AT_ONCE = 100


def runs(conductor: Conductor, fields: Fields) -> Any:
    names = [_name(one) for one in fields.get("experiment_ids") or ()]
    asked = filters.parse(fields.get("filter"), filters.RUNS)
    orders = [filters.parse_order(str(text), filters.RUNS) for text in fields.get("order_by") or ()]
    offset = experiments.offset_of(fields)
    most = whole(fields, "max_results", _USUAL)
    if not 0 < most <= _MOST:
        raise Fault(INVALID, f"max_results must be from 1 to {_MOST:,}, not {most}")
    conditions = [condition(one) for one in asked]
    stages = experiments.stages_of(fields.get("run_view_type"))
    if len(stages) == 1:
        deleted = condition(Comparison(TAG, STAGE, "=", DELETED))
        conditions.append(deleted if DELETED in stages else ~deleted)
    read_up(conductor, list(conductor.live))
    found = conductor.rooms.runs.matching(names, conditions, ordering(orders), offset, most + 1)
    page: dict[str, Any] = {"runs": serializers.runs(conductor, found[:most])}
    if len(found) > most:
        page["next_page_token"] = str(offset + most)
    return page


def history(conductor: Conductor, fields: Fields) -> Any:
    run_id, name = required(fields, "run_id", "run_uuid"), required(fields, "metric_key")
    conductor.rooms.runs.load(run_id)
    read_up(conductor, [run_id])
    after, limit = experiments.offset_of(fields), whole(fields, "max_results", 0) or None
    found = _history(conductor, run_id, name, after, limit)
    page: dict[str, Any] = {"metrics": found}
    if limit is not None and len(found) == limit:
        page["next_page_token"] = str(after + limit)
    return page


def histories(conductor: Conductor, fields: Fields) -> Any:
    """Of several runs at once, within a range of steps; of each no more than ``max_results``, spread evenly."""
    given = fields.get("run_ids") or fields.get("run_id") or []
    run_ids = [given] if isinstance(given, str) else list(given)
    if not 0 < len(run_ids) <= _MOST_RUNS_AT_ONCE:
        raise Fault(INVALID, f"from 1 to {_MOST_RUNS_AT_ONCE} run_ids must be given, not {len(run_ids)}")
    name = required(fields, "metric_key")
    first, last = whole(fields, "start_step", -(2**63)), whole(fields, "end_step", 2**63)
    most = whole(fields, "max_results", 25_000)
    metrics = []
    for run_id in run_ids:
        conductor.rooms.runs.load(run_id)
        read_up(conductor, [run_id])
        found = [one for one in _history(conductor, run_id, name) if first <= one["step"] <= last]
        every = -(-len(found) // max(most, 1))
        kept = found if every <= 1 else [*found[:-1:every], found[-1]]
        metrics += [{**one, "run_id": run_id} for one in kept]
    return {"metrics": metrics}


def _history(conductor: Conductor, run_id: str, name: str, after: int = 0, limit: int | None = None) -> list[Fields]:
    """By time, then by step, as MLflow's own server answers: clients that log in the background, such as that of
    Transformers, send what they logged in whichever order their threads come to it."""
    points = read_points(conductor.rooms.database, run_id, name)
    steps = np.where(points.steps == NO_STEP, np.arange(len(points)), points.steps)
    order = np.lexsort((steps, np.round(points.times * 1000)))[after : None if limit is None else after + limit]
    columns = (column[order].tolist() for column in (points.steps, points.times, points.values))
    return [serializers.metric(name, Point(*point), index) for index, point in zip(order.tolist(), zip(*columns))]


def _name(experiment_id: Any) -> str:
    """An experiment that is not here has no runs; MLflow's own server finds none either."""
    return DEFAULT if str(experiment_id) == DEFAULT_ID else str(experiment_id)
