"""Many clients change one run at the same time: nothing is lost, and nothing is written twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Param
from mlflow.exceptions import MlflowException
from test_mlflow_misuse import post

CLIENTS = 8


@pytest.fixture
def run_id(client: MlflowClient, experiment_id: str) -> str:
    return str(client.create_run(experiment_id).info.run_id)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Call ``work`` with each client's number in a separate thread, at the same moment; return results and errors."""
    barrier = threading.Barrier(CLIENTS)

    def start(number: int) -> Any:
        barrier.wait(60)
        try:
            return work(number)
        except MlflowException as error:
            return error

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(start, range(CLIENTS)))


def model_request(run_id: str, path: str) -> dict[str, object]:
    model = {"artifact_path": path, "run_id": run_id, "flavors": {}, "utc_time_created": "2026-01-01 00:00:00"}
    return {"run_id": run_id, "model_json": json.dumps(model)}


@pytest.mark.parametrize("kind", ["log-parameter", "log-batch"])
def test_one_of_many_clients_writes_a_parameter(client: MlflowClient, run_id: str, kind: str) -> None:
    def write(key: str, value: str) -> str:
        if kind == "log-batch":
            MlflowClient().log_batch(run_id, params=[Param(key, value)])
        else:
            MlflowClient().log_param(run_id, key, value)
        return value

    for trial in range(5):
        key = f"lr_{trial}"
        results = at_once(lambda number, key=key: write(key, str(number)))  # type: ignore[misc]
        errors = [result for result in results if isinstance(result, MlflowException)]
        written = [result for result in results if not isinstance(result, MlflowException)]
        assert (len(written), len(errors)) == (1, CLIENTS - 1)
        assert {error.error_code for error in errors} == {"INVALID_PARAMETER_VALUE"}
        assert all(f"'{key}'" in error.message and repr(written[0]) in error.message for error in errors)
        assert client.get_run(run_id).data.params[key] == written[0]


def test_many_clients_may_write_the_same_value(client: MlflowClient, run_id: str) -> None:
    results = at_once(lambda number: MlflowClient().log_param(run_id, "lr", "0.1"))
    assert not [result for result in results if isinstance(result, MlflowException)]
    assert client.get_run(run_id).data.params == {"lr": "0.1"}


def test_a_secret_parameter_may_be_written_again(client: MlflowClient, run_id: str) -> None:
    for _ in range(2):
        client.log_param(run_id, "api_key", "a-long-secret-1234")
    assert "secret" not in client.get_run(run_id).data.params["api_key"]


def test_a_batch_with_one_changed_parameter_writes_none_of_its_parameters(client: MlflowClient, run_id: str) -> None:
    client.log_param(run_id, "lr", "0.1")
    with pytest.raises(MlflowException, match=r"cannot be set to '0\.2'"):
        client.log_batch(run_id, params=[Param("layers", "3"), Param("lr", "0.2")])
    assert client.get_run(run_id).data.params == {"lr": "0.1"}


def test_models_that_are_logged_at_once_are_all_recorded(client: MlflowClient, tracking: str, run_id: str) -> None:
    for trial in range(3):

        def log_model(number: int, trial: int = trial) -> int:
            return post(tracking, "runs/log-model", model_request(run_id, f"model-{trial}-{number}")).status_code

        assert at_once(log_model) == [200] * CLIENTS
    history = json.loads(client.get_run(run_id).data.tags["mlflow.log-model.history"])
    paths = {f"model-{trial}-{number}" for trial in range(3) for number in range(CLIENTS)}
    assert {model["artifact_path"] for model in history} == paths
    assert len(history) == 3 * CLIENTS


def test_a_history_of_models_that_a_client_overwrote_is_an_error(
    client: MlflowClient, tracking: str, run_id: str
) -> None:
    client.set_tag(run_id, "mlflow.log-model.history", "none")
    response = post(tracking, "runs/log-model", model_request(run_id, "model"))
    assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "'mlflow.log-model.history' is not a JSON list: 'none'" in response.json()["message"]
    assert client.get_run(run_id).data.tags["mlflow.log-model.history"] == "none"


def test_tags_inputs_and_outputs_of_many_clients_are_all_stored(
    client: MlflowClient, tracking: str, run_id: str
) -> None:
    def log(number: int) -> list[int]:
        dataset = {"name": f"data-{number}", "digest": str(number), "source_type": "local", "source": "s"}
        bodies: list[tuple[str, dict[str, object]]] = [
            ("runs/set-tag", {"key": f"tag-{number}", "value": str(number)}),
            ("runs/log-inputs", {"datasets": [{"dataset": dataset}], "models": [{"model_id": f"m-in-{number}"}]}),
            ("runs/outputs", {"models": [{"model_id": f"m-out-{number}", "step": number}]}),
        ]
        return [post(tracking, path, {"run_id": run_id, **body}).status_code for path, body in bodies]

    assert at_once(log) == [[200] * 3] * CLIENTS
    run = client.get_run(run_id)
    numbers = range(CLIENTS)
    assert {f"tag-{number}": str(number) for number in numbers}.items() <= run.data.tags.items()
    assert {item.dataset.name for item in run.inputs.dataset_inputs} == {f"data-{number}" for number in numbers}
    assert {item.model_id for item in run.inputs.model_inputs} == {f"m-in-{number}" for number in numbers}
    assert {item.model_id for item in run.outputs.model_outputs} == {f"m-out-{number}" for number in numbers}


def test_one_of_many_clients_deletes_a_tag(client: MlflowClient, run_id: str) -> None:
    for trial in range(3):
        client.set_tag(run_id, "team", str(trial))
        results = at_once(lambda number: MlflowClient().delete_tag(run_id, "team"))
        errors = [result.error_code for result in results if isinstance(result, MlflowException)]
        assert errors == ["RESOURCE_DOES_NOT_EXIST"] * (CLIENTS - 1)
    assert "team" not in client.get_run(run_id).data.tags


def test_metrics_tags_and_parameters_of_a_model_from_many_clients_are_all_stored(
    client: MlflowClient, tracking: str, experiment_id: str, run_id: str
) -> None:
    model_id = client.create_logged_model(experiment_id, source_run_id=run_id).model_id

    def log(number: int) -> None:
        other = MlflowClient()
        other.log_metric(run_id, f"loss-{number}", float(number), model_id=model_id)
        other.set_logged_model_tags(model_id, {f"tag-{number}": str(number)})
        other.log_model_params(model_id, {f"param-{number}": str(number)})

    assert at_once(log) == [None] * CLIENTS
    model = client.get_logged_model(model_id)
    assert {metric.key: metric.value for metric in model.metrics} == {f"loss-{n}": float(n) for n in range(CLIENTS)}
    assert model.tags == {f"tag-{number}": str(number) for number in range(CLIENTS)}
    assert model.params == {f"param-{number}": str(number) for number in range(CLIENTS)}
