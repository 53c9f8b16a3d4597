"""Services of models that MLflow's client registered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import RestException

from runyard import Model, Workspace
from service_support import deploy_service

SCORE = """
import json, pathlib
from azureml.core.model import Model

def init():
    global factor
    folder = pathlib.Path(Model.get_model_path('MODEL'))
    assert (folder / 'MLmodel').is_file()
    factor = json.loads((folder / 'factor.json').read_text())

def run(text):
    return [factor * number for number in json.loads(text)['data']]
"""


def test_a_model_of_a_service_cannot_be_deleted_or_renamed_by_mlflow(
    client: MlflowClient, experiment_id: str, workspace: Workspace, tmp_path: Path
) -> None:
    name = f"factor-{os.urandom(4).hex()}"
    with mlflow.start_run() as run:
        mlflow.log_text("flavors: {}\n", "model/MLmodel")
        mlflow.log_text("3", "model/factor.json")
    mlflow.register_model(f"runs:/{run.info.run_id}/model", name)
    service = deploy_service(workspace, tmp_path, SCORE.replace("MODEL", name), [Model(workspace, name)])
    try:
        assert service.run(json.dumps({"data": [1, 2]})) == [3, 6]
        for change in (
            lambda: client.delete_model_version(name, "1"),
            lambda: client.delete_registered_model(name),
            lambda: client.rename_registered_model(name, f"{name}-2"),
        ):
            with pytest.raises(RestException, match=f"used by the service '{service.name}'") as caught:
                change()
            assert caught.value.error_code == "INVALID_STATE"
    finally:
        service.delete()
    client.delete_registered_model(name)
    assert Model.list(workspace, name) == []
