"""Histories of metrics: pages, several runs in one request, and samples; the order and limits are MLflow's."""

from __future__ import annotations

import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN


@pytest.fixture
def run_ids(client: MlflowClient, experiment_id: str) -> list[str]:
    """Two ended runs with 50 values of a metric each, in the order of their ids."""
    run_ids = sorted(client.create_run(experiment_id).info.run_id for _ in range(2))
    for number, run_id in enumerate(run_ids):
        points = [Metric("loss", 100 * number + step, 1000, step) for step in range(50)]
        client.log_batch(run_id, metrics=points[::-1])
        client.set_terminated(run_id)
    return run_ids


def test_a_history_is_read_in_pages(tracking: str, run_ids: list[str]) -> None:
    values, sizes, token = [], [], ""
    while True:
        query = {"run_id": run_ids[0], "metric_key": "loss", "max_results": 25, "page_token": token}
        page = get(tracking, "get-history", query)
        values += [metric["value"] for metric in page["metrics"]]
        sizes.append(len(page["metrics"]))
        token = page.get("next_page_token")
        if not token:
            break
    assert (values, sizes) == (list(range(50)), [25, 25])


def test_equal_times_are_sorted_by_step_and_value(client: MlflowClient, tracking: str, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    for value, time, step in ((3, 2, 1), (2, 1, 5), (1, 1, 5), (4, 1, 2)):
        client.log_metric(run_id, "loss", value, timestamp=time, step=step)
    client.set_terminated(run_id)
    metrics = get(tracking, "get-history", {"run_id": run_id, "metric_key": "loss"})["metrics"]
    assert [(metric["timestamp"], metric["step"], metric["value"]) for metric in metrics] == [
        (1, 2, 4),
        (1, 5, 1),
        (1, 5, 2),
        (2, 1, 3),
    ]


def test_histories_of_several_runs_follow_each_other(tracking: str, run_ids: list[str]) -> None:
    query = {"run_id": run_ids[::-1], "metric_key": "loss", "max_results": 60}
    metrics = get(tracking, "get-history-bulk", query)["metrics"]
    assert [metric["run_id"] for metric in metrics] == [run_ids[0]] * 50 + [run_ids[1]] * 10
    assert [metric["value"] for metric in metrics] == [*range(50), *range(100, 110)]


def test_samples_are_evenly_spaced_and_include_the_last_point(tracking: str, run_ids: list[str]) -> None:
    query = {"run_ids": run_ids, "metric_key": "loss", "max_results": 5}
    metrics = get(tracking, "get-history-bulk-interval", query)["metrics"]
    assert [(metric["run_id"], metric["step"]) for metric in metrics] == [
        (run_id, step) for run_id in run_ids for step in (0, 10, 20, 30, 49)
    ]
    in_range = get(tracking, "get-history-bulk-interval", {**query, "start_step": 7, "end_step": 9})["metrics"]
    assert [metric["step"] for metric in in_range] == [7, 8, 9] * 2


@pytest.mark.parametrize(
    ("endpoint", "query", "message"),
    [
        ("get-history", {"metric_key": "loss", "max_results": 0}, "Invalid value 0 for parameter 'max_results'"),
        ("get-history", {"metric_key": "loss", "page_token": "next"}, "Invalid page token 'next'"),
        ("get-history", {}, "Missing value for required parameter 'metric_key'"),
        ("get-history-bulk", {}, "must specify a metric_key"),
        ("get-history-bulk", {"metric_key": "loss", "run_id": [str(n) for n in range(101)]}, "more than 100 run_ids"),
        ("get-history-bulk-interval", {"metric_key": "loss"}, "Missing value for required parameter 'run_ids'"),
        ("get-history-bulk-interval", {"run_ids": ["1"]}, "Missing value for required parameter 'metric_key'"),
        (
            "get-history-bulk-interval",
            {"run_ids": ["1"], "metric_key": "loss", "max_results": 2501},
            "between 1 and 2500",
        ),
        (
            "get-history-bulk-interval",
            {"run_ids": ["1"], "metric_key": "loss", "start_step": 1},
            "both must be specified",
        ),
        (
            "get-history-bulk-interval",
            {"run_ids": ["1"], "metric_key": "loss", "start_step": 1, "end_step": 0},
            "end_step must be greater than start_step",
        ),
    ],
)
def test_an_invalid_request_for_a_history_is_an_error(
    tracking: str, endpoint: str, query: dict[str, object], message: str
) -> None:
    if endpoint != "get-history-bulk-interval":
        query = {"run_id": "1", **query}
    response = request(tracking, endpoint, query)
    assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert message in response.json()["message"]


def get(tracking: str, endpoint: str, query: dict[str, object]) -> dict[str, list[dict[str, object]]]:
    response = request(tracking, endpoint, query)
    assert response.status_code == 200, response.text
    content: dict[str, list[dict[str, object]]] = response.json()
    return content


def request(tracking: str, endpoint: str, query: dict[str, object]) -> requests.Response:
    headers = {"Authorization": f"Bearer {MLFLOW_TRACKING_TOKEN.get()}"}
    return requests.get(f"{tracking}/api/2.0/mlflow/metrics/{endpoint}", params=query, headers=headers, timeout=20)
