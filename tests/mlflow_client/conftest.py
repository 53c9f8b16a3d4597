"""The stock client of PyPI, against a real yard over TCP."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # an error of the yard is one, and not a minute of trying again

import mlflow
from mlflow import MlflowClient

from runyard import Workspace


@pytest.fixture
def tracking(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the yard, set as people set it."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")  # put back afterwards, whatever the workspace sets
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")
    uri = workspace.get_mlflow_tracking_uri()
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    yield uri
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


@pytest.fixture
def client(tracking: str) -> MlflowClient:
    return MlflowClient()


@pytest.fixture
def experiment_id(client: MlflowClient, request: pytest.FixtureRequest) -> str:
    """An experiment that no other test has runs in."""
    name = f"{request.node.name} {os.urandom(3).hex()}"
    mlflow.set_experiment(name)
    return str(client.get_experiment_by_name(name).experiment_id)
