"""Invalid requests: each returns an error in MLflow's format and changes nothing."""

from __future__ import annotations

import pytest
import requests
from mlflow import MlflowClient
from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN

INVALID_REQUESTS = [
    ("runs/log-batch", {"metrics": "much"}, "'metrics': expected a list, got 'much'"),
    ("runs/log-batch", {"metrics": [{"value": 1}]}, "'metrics': missing 'key'"),
    ("runs/log-batch", {"params": [1]}, "'params': expected a list of objects, got an item 1"),
    ("runs/log-batch", {"tags": {"a": "b"}}, "'tags': expected a list"),
    ("runs/log-metric", {"key": ["a"], "value": 1}, "'key': expected a string, got ['a']"),
    ("runs/log-metric", {"key": "a", "value": {"b": 1}}, "'value': expected a single value"),
    ("runs/log-metric", {"key": "a"}, "metric 'a': expected a number, got None"),
    ("runs/log-metric", {"key": "a", "value": 1, "step": "first"}, "step: expected an integer, got 'first'"),
    ("runs/log-metric", {"key": "a", "value": 1, "step": 2**70}, "does not fit 64 bits"),
    ("runs/log-metric", {"key": "a" * 300, "value": 1}, "1 to 255 characters"),
    ("runs/log-metric", {"value": 1}, "missing field 'key'"),
    ("runs/log-inputs", {"datasets": [{"dataset": 1}]}, "needs a dataset with a name and a digest"),
    ("runs/log-model", {"model_json": "{"}, "model_json is not valid JSON"),
    ("runs/search", {"experiment_ids": "0"}, "'experiment_ids': expected a list"),
    ("runs/search", {"experiment_ids": ["0"], "max_results": 0}, "max_results must be between 1 and 50,000"),
    ("runs/search", {"experiment_ids": ["0"], "page_token": "next"}, "invalid page token 'next'"),
    ("logged-models", {"source_run_id": "nobody", "experiment_id": "0"}, "no run 'nobody'"),
]


@pytest.mark.parametrize(("path", "body", "message"), INVALID_REQUESTS)
def test_an_invalid_request_is_an_error(
    client: MlflowClient, tracking: str, path: str, body: dict[str, object], message: str
) -> None:
    run_id = client.create_run("0").info.run_id
    response = post(tracking, path, {"run_id": run_id, **body})
    assert response.status_code in (400, 404)
    assert set(response.json()) == {"error_code", "message"}
    assert message in response.json()["message"]
    run = client.get_run(run_id)
    assert (run.data.metrics, run.data.params) == ({}, {})
    client.set_terminated(run_id)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_not_a_json_object_is_an_error(tracking: str, body: bytes) -> None:
    response = post(tracking, "runs/search", body)
    assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.parametrize("path", ["../../yard.db", "a/../../b", "%2e%2e/x"])
def test_artifact_paths_cannot_escape_their_run(client: MlflowClient, tracking: str, path: str) -> None:
    run_id = client.create_run("0").info.run_id
    url = f"{tracking}/api/2.0/mlflow-artifacts/artifacts/{run_id}/{path}".replace("..", "%2e%2e")
    request = requests.Request("PUT", url, data=b"x", headers=auth_headers()).prepare()
    request.url = url  # unnormalized, as an attacker would send it
    with requests.Session() as session:
        assert session.send(request, timeout=20).status_code >= 400
        download = requests.Request("GET", url, headers=auth_headers()).prepare()
        download.url = url
        assert session.send(download, timeout=20).status_code >= 400
    assert client.list_artifacts(run_id) == []
    client.set_terminated(run_id)


def post(tracking: str, path: str, body: dict[str, object] | bytes) -> requests.Response:
    url = f"{tracking}/api/2.0/mlflow/{path}"
    if isinstance(body, bytes):
        return requests.post(url, data=body, headers=auth_headers(), timeout=20)
    return requests.post(url, json=body, headers=auth_headers(), timeout=20)


def auth_headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {MLFLOW_TRACKING_TOKEN.get()}"}
