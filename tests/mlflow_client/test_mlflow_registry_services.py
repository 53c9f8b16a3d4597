"""Services of models that MLflow's client registered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import RestException

from bench.onnx_bytes import perceptron
from runyard import LocalWebservice, Model, Workspace
from service_support import deploy_service, unique_name

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


@pytest.mark.xdist_group("onnx services")
def test_a_model_of_the_onnx_flavor_is_served_without_a_script(
    client: MlflowClient, experiment_id: str, workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(perceptron([[1.0, 2.0], [10.0, 20.0]]))
    with mlflow.start_run() as run:
        mlflow.log_text("flavors:\n  onnx:\n    data: model.onnx\n    onnx_version: 1.19.0\n", "model/MLmodel")
        mlflow.log_artifact(str(tmp_path / "model.onnx"), "model")
    version = mlflow.register_model(f"runs:/{run.info.run_id}/model", f"perceptron-{os.urandom(4).hex()}")
    model = Model(workspace, version.name)
    assert (model.model_framework, model.model_framework_version) == ("Onnx", "1.19.0")
    service = Model.deploy(workspace, unique_name(), [model], None, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run({"data": [[1, 1], [2, 0]]}) == [[11.0, 22.0], [2.0, 4.0]]
    service.delete()
