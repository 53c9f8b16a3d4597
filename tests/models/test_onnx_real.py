"""Real nets, exported by both exporters of a real PyTorch in an environment that the yard built, and gated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, LocalWebservice, Model, PyTorch, Run, TensorFlow, Workspace
from runyard.errors import ModelInUse, WebserviceException
from support import a_home

# one run exports all: importing PyTorch and its exporter takes longer than using them
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
def found(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("found") / "found.json"
    run.download_file("outputs/found.json", str(place))
    content: dict[str, Any] = json.loads(place.read_text())
    return content


def batches(sidecar: dict[str, Any]) -> list[int]:
    return sorted({case["batch"] for case in sidecar["parity"]["cases"]})


def test_a_convolutional_net_passes_on_what_was_recorded_and_on_other_batches(
    yard: Workspace, run: Run, found: dict[str, Any]
) -> None:
    sidecar = found["cnn"]["sidecar"]
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


def test_an_lstm_passes_by_both_exporters_also_recorded_as_a_batch_of_one(found: dict[str, Any]) -> None:
    assert found["lstm"]["sidecar"]["parity"]["passed"]
    assert batches(found["lstm"]["sidecar"]) == [1, 4]
    traced = found["lstm-traced"]["sidecar"]
    assert (traced["exporter"], traced["opset"]) == ("torchscript", 17)
    for sidecar in (found["lstm"]["sidecar"], traced):
        assert [output["batch_axis"] for output in sidecar["outputs"]] == [0, 1]


def test_a_transformer_that_is_called_by_name_keeps_its_names(found: dict[str, Any]) -> None:
    sidecar = found["transformer"]["sidecar"]
    assert sidecar["parity"]["passed"]
    assert [one["name"] for one in sidecar["inputs"]] == ["tokens", "weight"]
    assert [one["name"] for one in sidecar["outputs"]] == ["logits", "pooled"]
    assert sidecar["inputs"][0]["dtype"] == "int64"


def test_eight_bits_pass_the_gate_or_are_not_registered(yard: Workspace, found: dict[str, Any]) -> None:
    sidecar = found["cnn-int8"]["sidecar"]
    assert (sidecar["quantized"], sidecar["quantized_how"]) == ("int8", "static")
    assert sidecar["parity"]["passed"]
    assert sidecar["parity_before"]["passed"]
    assert sidecar["size"] < sidecar["size_before"]
    assert "quantized model of Convolutional" in found["cnn-int8-strict"]["refused"]
    with pytest.raises(WebserviceException, match="no model named"):
        Model(yard, "net-cnn-int8-strict")


def test_a_model_that_differs_is_refused_with_where_and_is_not_registered(
    yard: Workspace, found: dict[str, Any]
) -> None:
    broken = found["broken"]
    assert "output 'output' for example 2 at [0, 0]: expected -3, got -2; 6 of 6 values" in broken["refused"]
    assert "exporter='dynamo'" in broken["hint"]
    assert not broken["report"]["passed"]
    assert [case["passed"] for case in broken["report"]["cases"]][:2] == [True, False]
    assert "cannot export Branching with dynamo" in found["broken-dynamo"]["error"]
    assert "nets.py" in found["broken-dynamo"]["error"]
    assert "as a batch of" in found["one-size"]["refused"]
    assert [model.name for model in Model.list(yard) if "broken" in model.name or "one-size" in model.name] == []


def test_a_registered_model_is_exported_and_tells_what_it_was_made_of(
    yard: Workspace, run: Run, found: dict[str, Any]
) -> None:
    assert found["of-weights"]["parent"] == "net-weights:1"
    made = Model(yard, "net-of-weights")
    assert made.lineage()["made_of"] == "net-weights:1"
    assert made.run_id == run.id
    assert "has the weights of a model, and not the model" in found["of-weights-alone"]["error"]
    assert "a object cannot be exported" in found["no-model"]["error"]


def test_what_cannot_be_compared_is_said_so_and_a_folder_does_as_well(found: dict[str, Any]) -> None:
    assert "the original Convolutional cannot compute example 1: RuntimeError: " in found["wrong-shape"]["error"]
    assert "returns different outputs for the same input" in found["restless"]["error"]
    assert found["kept"]["files"] == ["model.onnx", "onnx.json"]


def test_a_keras_model_of_tensorflow_passes_the_same_gate_and_a_bare_module_is_refused(
    yard: Workspace, tmp_path: Path
) -> None:
    packages = ["tf2onnx", "onnx", "onnxruntime"]
    project = Path(__file__).parent / "keras_project"
    estimator = TensorFlow(str(project), entry_script="export_keras.py", compute_target="local", pip_packages=packages)
    run = Experiment(yard, "onnx-keras").submit(estimator)
    run.wait_for_completion()
    run.download_file("outputs/found.json", str(tmp_path / "found.json"))
    found = json.loads((tmp_path / "found.json").read_text())
    for name in ("net", "file"):
        assert found[name]["parity"]["passed"]
        assert batches(found[name]) == [1, 4, 7]
        assert [one["name"] for one in found[name]["outputs"]] == ["output"]
    assert "a Module of TensorFlow is not exported here" in found["bare"]
    assert Model(yard, "keras-net").run_id == run.id


def test_a_keras_model_of_pytorch_passes_the_same_gate(found: dict[str, Any]) -> None:
    sidecar = found["keras"]["sidecar"]
    assert (sidecar["exporter"], sidecar["parity"]["passed"], batches(sidecar)) == ("keras", True, [1, 3, 6])
    assert [one["name"] for one in sidecar["inputs"]] == ["a", "b"]
    assert [(one["name"], one["shape"]) for one in sidecar["outputs"]] == [
        ("output_0", ["batch", 2]),
        ("output_1", ["batch", 4]),
    ]


def test_an_exported_model_is_served_without_code_and_not_deleted_meanwhile(
    yard: Workspace, found: dict[str, Any]
) -> None:
    assert found["lstm"]["sidecar"]["dynamic_batch"]
    model = Model(yard, "net-lstm")
    service = Model.deploy(yard, "net-lstm-service", [model], None, LocalWebservice.deploy_configuration())
    try:
        service.wait_for_deployment()
        answer = service.run({"series": [[[0.5] * 8] * 5] * 3})
        assert sorted(answer) == ["output_0", "output_1"]
        assert [len(row) for row in answer["output_0"]] == [3, 3, 3]
        with pytest.raises(ModelInUse, match="is used by the service 'net-lstm-service'"):
            model.delete()
    finally:
        service.delete()
    model.delete()
