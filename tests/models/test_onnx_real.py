"""Exports of PyTorch and Keras networks in environments built by the yard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, LocalWebservice, Model, PyTorch, Run, TensorFlow, Workspace
from runyard.errors import ModelInUse, WebserviceException
from support import a_home

# one run exports everything, because importing PyTorch and its exporters takes longer than the exports
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("onnx"), pytest.mark.timeout(900)]

PROJECT = Path(__file__).parent / "onnx_project"


@pytest.fixture(scope="module")
def yard() -> Iterator[Workspace]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        yield Workspace()


@pytest.fixture(scope="module")
def run(yard: Workspace) -> Run:
    estimator = PyTorch(
        str(PROJECT),
        entry_script="export_all.py",
        compute_target="local",
        pip_packages=["onnx", "onnxscript", "onnxruntime", "keras"],
    )
    run = Experiment(yard, "onnx").submit(estimator)
    run.wait_for_completion()
    return run


@pytest.fixture(scope="module")
def results(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("results") / "results.json"
    run.download_file("outputs/results.json", str(path))
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def batches(sidecar: dict[str, Any]) -> list[int]:
    return sorted({case["batch"] for case in sidecar["parity"]["cases"]})


def test_a_convolutional_network_passes_for_all_examples_and_batch_sizes(
    yard: Workspace, run: Run, results: dict[str, Any]
) -> None:
    sidecar = results["cnn"]["sidecar"]
    assert sidecar["parity"]["passed"]
    assert batches(sidecar) == [1, 4, 7]
    assert [case["name"] for case in sidecar["parity"]["cases"]][:3] == ["example 1", "example 2", "example 3"]
    assert sidecar["exporter"] == "dynamo"
    assert sidecar["inputs"] == [{"name": "image", "dtype": "float32", "shape": ["batch", 1, 8, 8], "batch_axis": 0}]
    assert sidecar["outputs"] == [{"name": "output", "dtype": "float32", "shape": ["batch", 10], "batch_axis": 0}]
    model = Model(yard, "net-cnn")
    assert model.model_framework == "Onnx"
    assert model.files() == ["model.onnx", "onnx.json"]
    assert model.run_id == run.id
    assert model.lineage()["environment_lock"].count("onnxscript==") == 1


def test_an_lstm_passes_with_both_exporters(results: dict[str, Any]) -> None:
    assert results["lstm"]["sidecar"]["parity"]["passed"]
    assert batches(results["lstm"]["sidecar"]) == [1, 4]
    traced = results["lstm-traced"]["sidecar"]
    assert (traced["exporter"], traced["opset"]) == ("torchscript", 17)
    for sidecar in (results["lstm"]["sidecar"], traced):
        assert [output["batch_axis"] for output in sidecar["outputs"]] == [0, 1]


def test_a_transformer_keeps_the_names_of_inputs_and_outputs(results: dict[str, Any]) -> None:
    sidecar = results["transformer"]["sidecar"]
    assert sidecar["parity"]["passed"]
    assert [tensor["name"] for tensor in sidecar["inputs"]] == ["tokens", "weight"]
    assert [tensor["name"] for tensor in sidecar["outputs"]] == ["logits", "pooled"]
    assert sidecar["inputs"][0]["dtype"] == "int64"


def test_a_quantized_model_is_registered_only_if_it_passes(yard: Workspace, results: dict[str, Any]) -> None:
    sidecar = results["cnn-int8"]["sidecar"]
    assert (sidecar["quantized"], sidecar["quantized_how"]) == ("int8", "static")
    assert sidecar["parity"]["passed"]
    assert sidecar["parity_before"]["passed"]
    assert sidecar["size"] < sidecar["size_before"]
    assert "quantized model of Convolutional" in results["cnn-int8-strict"]["refused"]
    with pytest.raises(WebserviceException, match="no model named"):
        Model(yard, "net-cnn-int8-strict")


def test_a_differing_model_is_reported_and_not_registered(yard: Workspace, results: dict[str, Any]) -> None:
    broken = results["broken"]
    assert "output 'output' for example 2 at [0, 0]: expected -3, got -2; 6 of 6 values" in broken["refused"]
    assert "exporter='dynamo'" in broken["hint"]
    assert not broken["report"]["passed"]
    assert [case["passed"] for case in broken["report"]["cases"]][:2] == [True, False]
    assert "cannot export Branching with dynamo" in results["broken-dynamo"]["error"]
    assert "nets.py" in results["broken-dynamo"]["error"]
    assert "as a batch of" in results["one-size"]["refused"]
    assert [model.name for model in Model.list(yard) if "broken" in model.name or "one-size" in model.name] == []


def test_an_export_of_a_registered_model_refers_to_it(yard: Workspace, run: Run, results: dict[str, Any]) -> None:
    assert results["from-weights"]["parent"] == "net-weights:1"
    exported = Model(yard, "net-from-weights")
    assert exported.lineage()["made_of"] == "net-weights:1"
    assert exported.run_id == run.id
    assert "contains only the weights of a model" in results["weights-only"]["error"]
    assert "cannot export a object" in results["no-model"]["error"]


def test_uncomparable_models_are_refused_and_folders_are_written(results: dict[str, Any]) -> None:
    assert "the original Convolutional cannot compute example 1: RuntimeError: " in results["wrong-shape"]["error"]
    assert "returns different outputs for the same input" in results["non-deterministic"]["error"]
    assert results["folder"]["files"] == ["model.onnx", "onnx.json"]


def test_a_keras_model_of_tensorflow_passes_and_a_bare_module_is_refused(yard: Workspace, tmp_path: Path) -> None:
    packages = ["tf2onnx", "onnx", "onnxruntime"]
    project = Path(__file__).parent / "keras_project"
    estimator = TensorFlow(str(project), entry_script="export_keras.py", compute_target="local", pip_packages=packages)
    run = Experiment(yard, "onnx-keras").submit(estimator)
    run.wait_for_completion()
    run.download_file("outputs/results.json", str(tmp_path / "results.json"))
    results = json.loads((tmp_path / "results.json").read_text())
    for name in ("net", "file"):
        assert results[name]["parity"]["passed"]
        assert batches(results[name]) == [1, 4, 7]
        assert [tensor["name"] for tensor in results[name]["outputs"]] == ["output"]
    assert "cannot export a Module of TensorFlow" in results["bare"]
    assert Model(yard, "keras-net").run_id == run.id


def test_a_keras_model_of_pytorch_passes(results: dict[str, Any]) -> None:
    sidecar = results["keras"]["sidecar"]
    assert (sidecar["exporter"], sidecar["parity"]["passed"], batches(sidecar)) == ("keras", True, [1, 3, 6])
    assert [tensor["name"] for tensor in sidecar["inputs"]] == ["a", "b"]
    assert [(tensor["name"], tensor["shape"]) for tensor in sidecar["outputs"]] == [
        ("output_0", ["batch", 2]),
        ("output_1", ["batch", 4]),
    ]


def test_an_exported_model_is_served_without_a_scoring_script(yard: Workspace, results: dict[str, Any]) -> None:
    assert results["lstm"]["sidecar"]["dynamic_batch"]
    model = Model(yard, "net-lstm")
    service = Model.deploy(yard, "net-lstm-service", [model], None, LocalWebservice.deploy_configuration())
    try:
        service.wait_for_deployment()
        response = service.run({"series": [[[0.5] * 8] * 5] * 3})
        assert sorted(response) == ["output_0", "output_1"]
        assert [len(row) for row in response["output_0"]] == [3, 3, 3]
        with pytest.raises(ModelInUse, match="is used by the service 'net-lstm-service'"):
            model.delete()
    finally:
        service.delete()
    model.delete()
