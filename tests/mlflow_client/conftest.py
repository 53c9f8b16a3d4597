"""The stock MLflow client against a real yard over TCP."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # an error must fail the test immediately instead of being retried

import mlflow
from mlflow import MlflowClient

from runyard import Workspace


@pytest.fixture
def tracking(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The tracking URI of the yard, set as users set it."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")  # restored after the test, because the workspace sets it
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")
    uri = workspace.get_mlflow_tracking_uri()
    previous_uri = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    yield uri
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(previous_uri)


@pytest.fixture
def client(tracking: str) -> MlflowClient:
    return MlflowClient()


@pytest.fixture
def experiment_id(client: MlflowClient, request: pytest.FixtureRequest) -> str:
    """An experiment that no other test uses."""
    name = f"{request.node.name} {os.urandom(3).hex()}"
    mlflow.set_experiment(name)
    return str(client.get_experiment_by_name(name).experiment_id)
