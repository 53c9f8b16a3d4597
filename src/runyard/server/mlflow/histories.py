"""Histories of metrics: of one run, of several, and samples for charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow import experiments
from runyard.server.mlflow.constants import to_json_number
from runyard.server.mlflow.errors import INVALID, MlflowError, integer_field, invalid_value, missing_value, require
from runyard.server.mlflow.runs import ingest_journals
from runyard.tracking.metrics import read_points
from runyard.wire.points import NO_STEP

Fields = dict[str, Any]
_MAX_RUNS = 100
_MAX_POINTS = 25_000  # of several runs together
_MAX_SAMPLES = 2500  # of each run


@dataclass(frozen=True)
class _Points:
    steps: NDArray[np.int64]
    times: NDArray[np.int64]  # milliseconds
    values: NDArray[np.float64]

    def by_time(self) -> NDArray[np.int64]:
        """Indices in the order of MLflow's server; clients that log in background threads send points in any order."""
        return np.lexsort((self.values, self.steps, self.times))

    def by_step(self) -> NDArray[np.int64]:
        return np.lexsort((self.values, self.times, self.steps))


def history(conductor: Conductor, fields: Fields) -> Any:
    run_id, name = require(fields, "run_id", "run_uuid"), require(fields, "metric_key")
    limit = integer_field(fields, "max_results", _MAX_POINTS)
    if limit <= 0:
        raise invalid_value("max_results", limit, "It must be a positive integer")
    start = experiments.page_offset(fields)
    points = _read(conductor, run_id, name)
    order = points.by_time()
    end = start + limit if "max_results" in fields else len(order)
    page: dict[str, Any] = {"metrics": _to_json(name, points, order[start:end])}
    if end < len(order):
        page["next_page_token"] = str(end)
    return page


def bulk(conductor: Conductor, fields: Fields) -> Any:
    """The points of several runs, one run after the other in the order of their ids, up to a number of points."""
    value = fields.get("run_ids") or fields.get("run_id") or []
    run_ids = [value] if isinstance(value, str) else value
    if not run_ids:
        raise MlflowError(INVALID, "GetMetricHistoryBulk request must specify at least one run_id.")
    if len(run_ids) > _MAX_RUNS:
        raise MlflowError(
            INVALID,
            f"GetMetricHistoryBulk request cannot specify more than {_MAX_RUNS} run_ids. Received {len(run_ids)}.",
        )
    if not fields.get("metric_key"):
        raise MlflowError(INVALID, "GetMetricHistoryBulk request must specify a metric_key.")
    limit = min(integer_field(fields, "max_results", _MAX_POINTS), _MAX_POINTS)
    metrics: list[Fields] = []
    for run_id in sorted(run_ids):
        points = _read(conductor, run_id, fields["metric_key"])
        order = points.by_time()[: max(limit - len(metrics), 0)]
        metrics += [{**metric, "run_id": run_id} for metric in _to_json(fields["metric_key"], points, order)]
    return {"metrics": metrics}


def samples(conductor: Conductor, fields: Fields) -> Any:
    """At most ``max_results`` points of each run, evenly spaced within a range of steps; always with the last one."""
    run_ids = fields.get("run_ids") or []
    if not run_ids:
        raise missing_value("run_ids")
    if len(run_ids) > _MAX_RUNS:
        raise MlflowError(
            INVALID,
            f"GetMetricHistoryBulkInterval request must specify at most {_MAX_RUNS} run_ids. Received {len(run_ids)}.",
        )
    name = require(fields, "metric_key")
    limit = integer_field(fields, "max_results", _MAX_SAMPLES)
    if not 0 < limit <= _MAX_SAMPLES:
        raise MlflowError(INVALID, f"max_results must be between 1 and {_MAX_SAMPLES}.")
    first, last = _step_range(fields)
    metrics: list[Fields] = []
    for run_id in run_ids:
        points = _read(conductor, run_id, name)
        order = points.by_step()
        order = order[(points.steps[order] >= first) & (points.steps[order] <= last)]
        metrics += [{**metric, "run_id": run_id} for metric in _to_json(name, points, _sample(order, limit))]
    return {"metrics": metrics}


def _step_range(fields: Fields) -> tuple[int, int]:
    if ("start_step" in fields) != ("end_step" in fields):
        raise MlflowError(INVALID, "If either start step or end step are specified, both must be specified.")
    first, last = integer_field(fields, "start_step", -(2**63)), integer_field(fields, "end_step", 2**63 - 1)
    if first > last:
        message = f"end_step must be greater than start_step. Found start_step={first} and end_step={last}."
        raise MlflowError(INVALID, message)
    return first, last


def _sample(order: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The first index of each of ``limit`` ranges of almost equal length; of the last range, its last index."""
    if len(order) <= limit:
        return order
    length, longer = divmod(len(order), limit)  # the first ranges are longer by one
    numbers = np.arange(limit)
    starts = numbers * length + np.minimum(numbers, longer)
    starts[-1] = len(order) - 1
    return order[starts]


def _read(conductor: Conductor, run_id: str, name: str) -> _Points:
    conductor.components.runs.load(run_id)
    ingest_journals(conductor, [run_id])
    points = read_points(conductor.components.database, run_id, name)
    # a point that was logged without a step gets its index as the step
    steps = np.where(points.steps == NO_STEP, np.arange(len(points)), points.steps)
    return _Points(steps, np.round(points.times * 1000).astype(np.int64), points.values)


def _to_json(name: str, points: _Points, order: NDArray[np.int64]) -> list[Fields]:
    columns = (column[order].tolist() for column in (points.steps, points.times, points.values))
    return [
        {"key": name, "value": to_json_number(value), "timestamp": time, "step": step}
        for step, time, value in zip(*columns)
    ]
