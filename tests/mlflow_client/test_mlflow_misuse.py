"""Invalid requests: each returns an error in MLflow's format and changes nothing."""

from __future__ import annotations

import pytest
import requests
from mlflow import MlflowClient
from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN

METRIC = {"key": "a", "value": 1, "timestamp": 1}
DATASET = {"name": "digits", "digest": "1", "source_type": "local", "source": "{}"}


def too_long(name: str, limit: int) -> str:
    return f"'{name}' exceeds the maximum length of {limit} characters"


def invalid(value: str, path: str) -> str:
    return f"Invalid value {value} for parameter '{path}' supplied"


def missing(path: str) -> str:
    return f"Missing value for required parameter '{path}'."


INVALID_REQUESTS = [
    # types, as protobuf defines them
    ("runs/log-batch", {"metrics": "much"}, invalid('"much"', "metrics")),
    ("runs/log-batch", {"metrics": [{"value": 1, "timestamp": 1}]}, missing("metrics[0].key")),
    ("runs/log-batch", {"metrics": [{"key": "a", "value": 1}]}, missing("metrics[0].timestamp")),
    ("runs/log-batch", {"metrics": [METRIC, {**METRIC, "step": "first"}]}, invalid('"first"', "metrics[1].step")),
    ("runs/log-batch", {"params": [1]}, invalid("1", "params[0]")),
    ("runs/log-batch", {"params": [{"key": "a", "value": 1}]}, invalid("1", "params[0].value")),
    ("runs/log-batch", {"tags": {"a": "b"}}, invalid('{"a": "b"}', "tags")),
    ("runs/log-metric", {**METRIC, "key": ["a"]}, invalid('["a"]', "key")),
    ("runs/log-metric", {**METRIC, "key": 31}, invalid("31", "key")),
    ("runs/log-metric", {**METRIC, "value": {"b": 1}}, invalid('{"b": 1}', "value")),
    ("runs/log-metric", {**METRIC, "value": True}, invalid("true", "value")),
    ("runs/log-metric", {**METRIC, "value": None}, missing("value")),
    ("runs/log-metric", {**METRIC, "step": "first"}, invalid('"first"', "step")),
    ("runs/log-metric", {**METRIC, "step": 1.5}, invalid("1.5", "step")),
    ("runs/log-metric", {**METRIC, "step": 2**70}, "'step' supplied: expected a 64-bit integer"),
    ("runs/log-metric", {**METRIC, "step": -(2**63)}, invalid(str(-(2**63)), "step")),
    ("runs/log-metric", {**METRIC, "timestamp": "now"}, invalid('"now"', "timestamp")),
    ("runs/log-metric", {"key": "a", "value": 1}, missing("timestamp")),
    ("runs/log-metric", {"value": 1, "timestamp": 1}, missing("key")),
    ("runs/log-parameter", {"key": "a", "value": 1}, invalid("1", "value")),
    ("runs/set-tag", {"key": "a", "value": 1}, invalid("1", "value")),
    ("runs/update", {"status": "BUSY"}, invalid('"BUSY"', "status")),
    ("runs/update", {"end_time": "noon"}, invalid('"noon"', "end_time")),
    ("runs/create", {"start_time": -1}, invalid("-1", "start_time")),
    (
        "runs/create",
        {"run_name": "a", "tags": [{"key": "mlflow.runName", "value": "b"}]},
        "with different values",
    ),
    ("experiments/create", {"name": 123}, invalid("123", "name")),
    ("experiments/create", {"name": ""}, missing("name")),
    ("experiments/create", {"name": "a", "artifact_location": 9.0}, invalid("9.0", "artifact_location")),
    ("runs/search", {"experiment_ids": "0"}, invalid('"0"', "experiment_ids")),
    ("runs/search", {"experiment_ids": [0]}, invalid("0", "experiment_ids")),
    ("runs/search", {"experiment_ids": ["0"], "max_results": 0}, invalid("0", "max_results")),
    ("runs/search", {"experiment_ids": ["0"], "max_results": 50_001}, invalid("50001", "max_results")),
    ("runs/search", {"experiment_ids": ["0"], "page_token": "next"}, "Invalid page token 'next'"),
    ("experiments/search-datasets", {"experiment_ids": []}, "must specify at least one experiment_id"),
    ("experiments/search-datasets", {"experiment_ids": ["0"] * 21}, "cannot specify more than 20 experiment_ids"),
    ("experiments/search", {"max_results": 0}, invalid("0", "max_results")),
    ("experiments/search", {"filter": "params.a = 'b'"}, "unknown 'params'"),
    # names
    ("runs/log-metric", {**METRIC, "key": "a (b)"}, invalid('"a (b)"', "name")),
    ("runs/log-metric", {**METRIC, "key": "../a"}, "This name would resolve to '../a'"),
    ("runs/log-metric", {**METRIC, "key": "a//b"}, "This name would resolve to 'a/b'"),
    ("runs/log-metric", {**METRIC, "timestamp": -1}, invalid("-1", "timestamp")),
    ("runs/log-parameter", {"key": "/a", "value": "b"}, invalid('"/a"', "key")),
    ("runs/set-tag", {"key": ".", "value": "b"}, invalid('"."', "key")),
    ("runs/log-batch", {"tags": [{"key": "a", "value": "b"}, {"key": "a;b", "value": "c"}]}, "'tags[1].key'"),
    ("experiments/set-experiment-tag", {"experiment_id": "0", "key": "a&b", "value": "c"}, invalid('"a&b"', "key")),
    # lengths and numbers of things
    ("runs/log-metric", {**METRIC, "key": "a" * 251}, too_long("Metric name", 250)),
    ("runs/log-parameter", {"key": "a" * 251, "value": "b"}, too_long("key", 250)),
    ("runs/set-tag", {"key": "a" * 251, "value": "b"}, too_long("key", 250)),
    ("experiments/create", {"name": "a" * 501}, too_long("name", 500)),
    ("experiments/set-experiment-tag", {"experiment_id": "0", "key": "a", "value": "b" * 20_001}, "'value' exceeds"),
    ("runs/log-batch", {"metrics": [METRIC] * 1001}, "at most 1000 metrics. Got 1001"),
    ("runs/log-batch", {"params": [{"key": f"p{n}", "value": ""} for n in range(101)]}, "at most 100 params"),
    ("runs/log-batch", {"tags": [{"key": f"t{n}", "value": ""} for n in range(101)]}, "at most 100 tags"),
    (
        "runs/log-batch",
        {"metrics": [METRIC] * 1000, "tags": [{"key": "a", "value": "b"}]},
        "at most 1000 metrics, params",
    ),
    (
        "runs/log-batch",
        {"params": [{"key": "a", "value": "b"}, {"key": "a", "value": "b"}]},
        "Duplicate parameter keys",
    ),
    # datasets and models
    ("runs/log-inputs", {"datasets": [{"dataset": 1}]}, missing("datasets[0].dataset")),
    ("runs/log-inputs", {"datasets": [{"dataset": {"name": "digits"}}]}, missing("datasets[0].dataset.digest")),
    ("runs/log-inputs", {"datasets": [{"dataset": {**DATASET, "digest": "1" * 37}}]}, too_long("digest", 36)),
    ("runs/log-model", {"model_json": "{"}, "model_json is not valid JSON"),
    ("runs/log-model", {"model_json": "{}"}, "missing mandatory fields: artifact_path, flavors"),
    ("logged-models", {"source_run_id": "nobody", "experiment_id": "0"}, "no run 'nobody'"),
    ("logged-models", {"experiment_id": "0", "name": "a/b"}, "Invalid model name ('a/b') provided."),
    # places for artifacts that no client could use
    *(
        ("experiments/create", {"name": f"at {location}", "artifact_location": location}, "'artifact_location'")
        for location in ("relative/folder", "runs:/1/model", "mlflow-artifacts:/other", "s3://a#b", "s3://a?b=../c")
    ),
]


@pytest.mark.parametrize(
    ("path", "body", "message"), INVALID_REQUESTS, ids=[f"{r[0]}-{n}" for n, r in enumerate(INVALID_REQUESTS)]
)
def test_an_invalid_request_is_an_error(
    client: MlflowClient, tracking: str, path: str, body: dict[str, object], message: str
) -> None:
    run_id = client.create_run("0").info.run_id
    response = post(tracking, path, {"run_id": run_id, **body})
    assert response.json()["error_code"] in ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST")
    assert response.status_code in (400, 404)
    assert set(response.json()) == {"error_code", "message"}
    assert message in response.json()["message"]
    run = client.get_run(run_id)
    assert (run.data.metrics, run.data.params, run.info.status) == ({}, {}, "RUNNING")
    client.set_terminated(run_id)


def test_integers_may_be_strings_and_numbers_too(client: MlflowClient, tracking: str) -> None:
    """The JSON of protobuf writes 64-bit integers as strings, and infinities as words."""
    run_id = client.create_run("0").info.run_id
    bodies = [
        {"key": "a", "value": "1.5", "timestamp": "1000", "step": "2"},
        {"key": "b", "value": "-Infinity", "timestamp": 1000.0, "step": None},
        {"key": "c", "value": "NaN", "timestamp": 0},
    ]
    for body in bodies:
        assert post(tracking, "runs/log-metric", {"run_id": run_id, **body}).status_code == 200
    values = client.get_run(run_id).data.metrics
    assert (values["a"], values["b"], str(values["c"])) == (1.5, float("-inf"), "nan")
    assert client.get_metric_history(run_id, "a")[0].step == 2
    client.set_terminated(run_id)


def test_long_values_are_stored_whole(client: MlflowClient) -> None:
    """MLflow's own server cuts them off by default."""
    run_id = client.create_run("0").info.run_id
    client.log_param(run_id, "prompt", "p" * 20_000)
    client.set_tag(run_id, "note", "n" * 20_000)
    data = client.get_run(run_id).data
    assert (len(data.params["prompt"]), len(data.tags["note"])) == (20_000, 20_000)
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


@pytest.mark.parametrize("path", ["../other", "a/../../b", "/etc", "a\\b", "%2e%2e/b"])
def test_a_path_outside_of_the_run_cannot_be_listed(client: MlflowClient, tracking: str, path: str) -> None:
    run_id = client.create_run("0").info.run_id
    url = f"{tracking}/api/2.0/mlflow/artifacts/list"
    response = requests.get(url, params={"run_id": run_id, "path": path}, headers=auth_headers(), timeout=20)
    assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "Invalid path" in response.json()["message"]
    client.set_terminated(run_id)


def post(tracking: str, path: str, body: dict[str, object] | bytes) -> requests.Response:
    url = f"{tracking}/api/2.0/mlflow/{path}"
    if isinstance(body, bytes):
        return requests.post(url, data=body, headers=auth_headers(), timeout=20)
    return requests.post(url, json=body, headers=auth_headers(), timeout=20)


def auth_headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {MLFLOW_TRACKING_TOKEN.get()}"}
