"""Metrics that arrive out of order, at once, or twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric
from test_mlflow_concurrency import CLIENTS, at_once
from test_mlflow_misuse import post
from test_mlflow_resume import row_of

from cli_support import CommandLine
from runyard import Experiment, Run, Workspace
from runyard.client.connection import Connection
from support import stop_yard

NOW_MS = 1_700_000_000_000


@pytest.fixture
def run_id(client: MlflowClient, experiment_id: str) -> str:
    return str(client.create_run(experiment_id).info.run_id)


def metric(step: int, value: float, timestamp: int = NOW_MS, key: str = "loss") -> dict[str, Any]:
    return {"key": key, "value": value, "timestamp": timestamp, "step": step}


def history(client: MlflowClient, run_id: str, key: str = "loss") -> list[tuple[int, int, float]]:
    return [(point.step, point.timestamp, point.value) for point in client.get_metric_history(run_id, key)]


def test_the_last_value_has_the_highest_step_everywhere(
    client: MlflowClient, workspace: Workspace, experiment_id: str, run_id: str, home: Path, tmp_path: Path
) -> None:
    steps = list(range(80))
    random.Random(1).shuffle(steps)

    def log(number: int) -> None:
        other = MlflowClient()
        for step in steps[number::CLIENTS]:
            other.log_metric(run_id, "loss", 100.0 - step, timestamp=NOW_MS + step % 7, step=step)

    assert at_once(log) == [None] * CLIENTS
    client.log_metric(run_id, "loss", 55.0, timestamp=NOW_MS + 10**6, step=45)  # later, but of an earlier step
    assert client.get_run(run_id).data.metrics == {"loss": 21.0}
    (match,) = client.search_runs([experiment_id], "metrics.loss = 21")
    (point,) = match.data._metric_objs
    assert (point.value, point.step, point.timestamp) == (21.0, 79, NOW_MS + 79 % 7)
    assert client.search_runs([experiment_id], "metrics.loss > 21") == []
    other = client.create_run(experiment_id).info.run_id
    client.log_metric(other, "loss", 30.0)
    ordered = client.search_runs([experiment_id], order_by=["metrics.loss ASC"])
    assert [run.info.run_id for run in ordered] == [run_id, other]
    assert row_of(run_id)["metrics"] == {"loss": 21.0}
    assert Connection().get(f"/api/runs/{run_id}/summary")["metrics"] == {"loss": 21.0}
    (series,) = Connection().get(f"/api/runs/{run_id}/series")
    assert (series["last"], series["count"], series["min"]) == (21, 81, 21)
    assert CommandLine(home, tmp_path)("metrics", run_id).text.splitlines()[1].split() == [
        "loss",
        "81",
        "21",
        "21",
        "100",
    ]
    assert len(Run.get(workspace, run_id).get_metrics()["loss"]) == 81


def test_asynchronous_logging_leaves_the_last_value(client: MlflowClient, experiment_id: str) -> None:
    for _ in range(3):
        with mlflow.start_run(experiment_id=experiment_id) as run:
            operations = [mlflow.log_metric("loss", 1.0 / (step + 1), step, synchronous=False) for step in range(40)]
            for operation in operations:
                operation.wait()
        assert client.get_run(run.info.run_id).data.metrics == {"loss": 1.0 / 40}


@pytest.mark.parametrize(
    ("points", "last"),
    [
        ([(1, 5, 0.1), (2, 3, 0.2), (0, 9, 0.3)], 0.2),
        ([(1, 5, 0.1), (1, 9, 0.2), (1, 7, 0.3)], 0.2),
        ([(1, 5, 0.1), (1, 5, 0.3), (1, 5, 0.2)], 0.3),
        ([(-1, 5, 0.1), (-2, 9, 0.2)], 0.1),
    ],
    ids=["steps", "times of one step", "values of one time", "negative steps"],
)
def test_steps_then_times_then_values_decide(
    client: MlflowClient, tracking: str, run_id: str, points: list[tuple[int, int, float]], last: float
) -> None:
    batch = [metric(step, value, NOW_MS + time) for step, time, value in points]
    post(tracking, "runs/log-batch", {"run_id": run_id, "metrics": batch})
    for step, time, value in points:
        client.log_metric(run_id, "single", value, NOW_MS + time, step)
    assert client.get_run(run_id).data.metrics == {"loss": last, "single": last}


def test_a_batch_that_is_sent_again_is_stored_once(
    client: MlflowClient, tracking: str, workspace: Workspace, home: Path, run_id: str
) -> None:
    metrics = [metric(step, step / 8, NOW_MS + step) for step in range(100)]
    body = {"run_id": run_id, "metrics": [*metrics, metric(7, float("nan"), key="nan"), metrics[3]]}
    body["metrics"][100]["value"] = "NaN"
    points = [(step, NOW_MS + step, step / 8) for step in range(100)]
    for _ in range(3):
        assert post(tracking, "runs/log-batch", body).status_code == 200
    assert history(client, run_id) == points
    assert at_once(lambda number: post(tracking, "runs/log-batch", body).status_code) == [200] * CLIENTS
    assert history(client, run_id) == points

    stop_yard(home)
    tracking = workspace.get_mlflow_tracking_uri()
    mlflow.set_tracking_uri(tracking)
    for path in ("runs/log-batch", "runs/log-metric"):
        request = body if path == "runs/log-batch" else {"run_id": run_id, **metrics[50]}
        assert post(tracking, path, request).status_code == 200
    after = MlflowClient()
    assert history(after, run_id) == points
    assert len(after.get_metric_history(run_id, "nan")) == 1


def test_values_that_differ_in_time_are_all_stored(client: MlflowClient, run_id: str) -> None:
    points = [Metric("loss", 0.5, NOW_MS + time, 0) for time in range(5)]
    client.log_batch(run_id, metrics=points)
    client.log_batch(run_id, metrics=points)
    assert history(client, run_id) == [(0, NOW_MS + time, 0.5) for time in range(5)]


def test_the_metrics_of_a_model_are_its_last_values(client: MlflowClient, experiment_id: str, run_id: str) -> None:
    model_id = client.create_logged_model(experiment_id, source_run_id=run_id).model_id
    for step, value in ((2, 0.25), (3, 0.5), (1, 0.75)):
        client.log_metric(run_id, "loss", value, NOW_MS, step, model_id=model_id)
    (point,) = client.get_logged_model(model_id).metrics
    assert (point.step, point.value) == (3, 0.5)


def test_values_of_run_log_and_mlflow_share_one_metric(client: MlflowClient, experiment: Experiment) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log("loss", 0.5, step=3)
        client.log_metric(run.id, "loss", 0.9, step=1)
        assert client.get_run(run.id).data.metrics == {"loss": 0.5}
        client.log_metric(run.id, "loss", 0.4, step=4)
        run.log("loss", 0.7, step=2)
        assert client.get_run(run.id).data.metrics == {"loss": 0.4}
        run.log("loss", 0.3)
        assert client.get_run(run.id).data.metrics == {"loss": 0.3}
