"""Answers that belong to the server, not to an object: its health, its version, and the refusal of a wrong token."""

from __future__ import annotations

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.exceptions import RestException


def test_health_and_version_answer_without_a_token(tracking: str) -> None:
    health, version = (requests.get(f"{tracking}/{path}", timeout=20) for path in ("health", "version"))
    assert (health.status_code, health.text) == (200, "OK")
    assert version.status_code == 200
    assert version.headers["content-type"].startswith("text/plain")
    assert version.text.split(".")[0] == mlflow.__version__.split(".")[0]


def test_the_studio_and_the_yards_own_health_stay_where_they_are(tracking: str) -> None:
    assert "text/html" in requests.get(f"{tracking}/healthy", timeout=20).headers["content-type"]
    assert requests.get(f"{tracking}/api/health", timeout=20).status_code == 401


@pytest.mark.parametrize("token", ["wrong", ""])
def test_a_wrong_token_is_an_error_of_authentication(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", token)
    with pytest.raises(RestException, match="MLFLOW_TRACKING_TOKEN") as caught:
        client.get_experiment("0")
    assert (caught.value.error_code, caught.value.get_http_status_code()) == ("UNAUTHENTICATED", 401)


def test_a_wrong_token_is_refused_for_artifacts_and_other_endpoints_too(tracking: str) -> None:
    for path in ("2.0/mlflow-artifacts/artifacts/a/b", "3.0/mlflow/server-info", "2.0/mlflow/no-such-endpoint"):
        response = requests.get(f"{tracking}/api/{path}", headers={"Authorization": "Bearer wrong"}, timeout=20)
        assert (response.status_code, response.json()["error_code"]) == (401, "UNAUTHENTICATED")


def test_text_that_cannot_be_stored_is_an_error_in_mlflows_format(client: MlflowClient, tracking: str) -> None:
    run_id = client.create_run("0").info.run_id
    token = requests.utils.unquote(mlflow.environment_variables.MLFLOW_TRACKING_TOKEN.get())
    body = f'{{"run_id": "{run_id}", "key": "note", "value": "\\ud800"}}'
    response = requests.post(
        f"{tracking}/api/2.0/mlflow/runs/set-tag", data=body, headers={"Authorization": f"Bearer {token}"}, timeout=20
    )
    assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    client.set_terminated(run_id)
