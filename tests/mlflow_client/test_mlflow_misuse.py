"""Requests that no client should send: each is refused with MLflow's own kind of error, and spoils nothing."""

from __future__ import annotations

import pytest
import requests
from mlflow import MlflowClient
from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN

REFUSED = [
    ("runs/log-batch", {"metrics": "much"}, "'metrics' must be a list, not 'much'"),
    ("runs/log-batch", {"metrics": [{"value": 1}]}, "which lacks 'key'"),
    ("runs/log-batch", {"params": [1]}, "'params' must be a list of objects; 1 is none"),
    ("runs/log-batch", {"tags": {"a": "b"}}, "'tags' must be a list"),
    ("runs/log-metric", {"key": ["a"], "value": 1}, "'key' must be a text, not ['a']"),
    ("runs/log-metric", {"key": "a", "value": {"b": 1}}, "'value' must be one value"),
    ("runs/log-metric", {"key": "a"}, "the value of metric 'a' is no number: None"),
    ("runs/log-metric", {"key": "a", "value": 1, "step": "first"}, "step must be a whole number, not 'first'"),
    ("runs/log-metric", {"key": "a", "value": 1, "step": 2**70}, "does not fit 64 bits"),
    ("runs/log-metric", {"key": "a" * 300, "value": 1}, "1 to 255 characters"),
    ("runs/log-metric", {"value": 1}, "the request lacks 'key'"),
    ("runs/log-inputs", {"datasets": [{"dataset": 1}]}, "needs a dataset with a name and a digest"),
    ("runs/log-model", {"model_json": "{"}, "model_json is no JSON"),
    ("runs/search", {"experiment_ids": "0"}, "'experiment_ids' must be a list"),
    ("runs/search", {"experiment_ids": ["0"], "max_results": 0}, "max_results must be from 1 to 50,000"),
    ("runs/search", {"experiment_ids": ["0"], "page_token": "next"}, "'next' is no page token"),
    ("logged-models", {"source_run_id": "nobody", "experiment_id": "0"}, "no run 'nobody'"),
]


@pytest.mark.parametrize(("path", "body", "said"), REFUSED)
def test_a_request_that_makes_no_sense_is_refused(
    client: MlflowClient, tracking: str, path: str, body: dict[str, object], said: str
) -> None:
    run_id = client.create_run("0").info.run_id
    answer = post(tracking, path, {"run_id": run_id, **body})
    assert answer.status_code in (400, 404)
    assert set(answer.json()) == {"error_code", "message"}
    assert said in answer.json()["message"]
    run = client.get_run(run_id)
    assert (run.data.metrics, run.data.params) == ({}, {})
    client.set_terminated(run_id)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(tracking: str, body: bytes) -> None:
    answer = post(tracking, "runs/search", body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.parametrize("path", ["../../yard.db", "a/../../b", "%2e%2e/x"])
def test_no_artifact_leads_out_of_its_run(client: MlflowClient, tracking: str, path: str) -> None:
    run_id = client.create_run("0").info.run_id
    place = f"{tracking}/api/2.0/mlflow-artifacts/artifacts/{run_id}/{path}".replace("..", "%2e%2e")
    request = requests.Request("PUT", place, data=b"x", headers=signed()).prepare()
    request.url = place  # as it is: whoever means harm does not tidy it up
    with requests.Session() as session:
        assert session.send(request, timeout=20).status_code >= 400
        fetch = requests.Request("GET", place, headers=signed()).prepare()
        fetch.url = place
        assert session.send(fetch, timeout=20).status_code >= 400
    assert client.list_artifacts(run_id) == []
    client.set_terminated(run_id)


def post(tracking: str, path: str, body: dict[str, object] | bytes) -> requests.Response:
    place = f"{tracking}/api/2.0/mlflow/{path}"
    if isinstance(body, bytes):
        return requests.post(place, data=body, headers=signed(), timeout=20)
    return requests.post(place, json=body, headers=signed(), timeout=20)


def signed() -> dict[str, str]:
    return {"Authorization": f"Bearer {MLFLOW_TRACKING_TOKEN.get()}"}
