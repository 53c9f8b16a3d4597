"""The five worked examples: each notebook is executed from its first cell to its last, and what it made is checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from examples_support import ROOT, in_one_process, ranks_agree
from nbclient import NotebookClient

from runyard import Experiment, Model, PyTorch, Run, TensorFlow, Workspace
from runyard.migration.scan import scan

# with the other examples, on one worker: see test_examples.py
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("examples"), pytest.mark.timeout(1500)]

WORKED = {
    "pytorch_train_tune_deploy": "pytorch-train-tune-deploy.ipynb",
    "horovod_pytorch": "horovod-pytorch.ipynb",
    "tensorflow_train_tune_deploy": "tensorflow-train-tune-deploy.ipynb",
    "horovod_tensorflow": "horovod-tensorflow.ipynb",
    "tf_parameter_server": "parameter-server.ipynb",
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Jupyter keeps in a home folder must not be this machine's."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def executed(name: str, folder: Path) -> str:
    """All that the notebook of an example printed, in a copy of the example."""
    copy = folder / name
    shutil.copytree(ROOT / "examples" / name, copy)
    book = nbformat.read(copy / WORKED[name], as_version=4)
    place = {"metadata": {"path": str(copy)}}
    NotebookClient(book, timeout=1200, startup_timeout=300, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def newest(yard: Workspace, experiment: str) -> Run:
    run = next(Experiment(yard, experiment).get_runs())
    assert run.get_status() == "Completed"
    return run


@pytest.mark.parametrize(("name", "book"), WORKED.items())
def test_a_worked_example_says_azureml_and_runs_as_it_is(name: str, book: str) -> None:
    """Its notebook and its scripts, read as `runyard migrate` reads anybody's."""
    files = {file.path: file for file in scan(ROOT / "examples" / name).files}
    assert {path: file.findings for path, file in files.items() if file.findings} == {}
    for path in (book, "project/train.py"):
        assert any(used.startswith("azureml.") for used in files[path].sdk_names)


def test_horovod_for_pytorch_agrees_with_one_rank_on_the_same_batches(yard: Workspace, places: Path) -> None:
    assert "2 ranks, accuracy 0.9" in executed("horovod_pytorch", places)
    run = newest(yard, "horovod-pytorch")
    losses = ranks_agree(run, 2)
    given = {"--data-dir": str(places / "horovod_pytorch" / "data"), "--epochs": 5}
    alone = in_one_process(
        yard, PyTorch, "horovod_pytorch", pip=["numpy"], script_params=given, distributed_backend="mpi"
    )
    assert losses == pytest.approx(alone, rel=1e-4)
    assert run.end.processes_left == 0


def test_horovod_for_tensorflow_agrees_with_one_rank_on_the_same_batches(yard: Workspace, places: Path) -> None:
    assert "2 ranks, accuracy 0.9" in executed("horovod_tensorflow", places)
    run = newest(yard, "horovod-tensorflow")
    losses = ranks_agree(run, 2)
    given = {"--data-dir": str(places / "horovod_tensorflow" / "data"), "--batch-size": 50}
    alone = in_one_process(
        yard, TensorFlow, "horovod_tensorflow", pip=[], script_params=given, distributed_backend="mpi"
    )
    assert losses == pytest.approx(alone, rel=1e-4)
    assert run.end.processes_left == 0


def test_a_parameter_server_serves_two_workers(yard: Workspace, places: Path) -> None:
    executed("tf_parameter_server", places)
    run = newest(yard, "tf-parameter-server")
    metrics = run.get_metrics()
    assert len(metrics["steps"]) == 2
    assert sum(metrics["steps"]) >= 300
    assert min(metrics["accuracy"]) > 0.7
    assert run.end.processes_left == 0
    names = run.get_file_names()
    for task in ("ps_0", "worker_0", "worker_1"):
        assert f"azureml-logs/70_driver_log_{task}.txt" in names


def test_pytorch_is_trained_tuned_deployed_and_served_by_onnx_runtime_too(yard: Workspace, places: Path) -> None:
    said = executed("pytorch_train_tune_deploy", places)
    runs = list(Experiment(yard, "pytorch-digits").get_runs())  # one run, a sweep, and the run for ONNX
    assert [run.get_status() for run in runs] == ["Completed"] * 3
    assert len(list(runs[1].get_children())) == 3
    best = runs[1].get_best_run_by_primary_metric()
    assert max(best.get_metrics()["best_val_acc"]) > 0.9
    registered = Model(yard, name="pytorch-digits")
    assert (registered.version, registered.run_id) == (1, best.id)
    assert Model(yard, name="digits-onnx").run_id == runs[0].id
    assert said.count("Healthy") >= 1
    assert dict(yard.webservices) == {}  # the last cell deletes them


def test_tensorflow_is_trained_tuned_and_deployed_as_in_2019(yard: Workspace, places: Path) -> None:
    said = executed("tensorflow_train_tune_deploy", places)
    runs = list(Experiment(yard, "tf-digits").get_runs())
    assert [run.get_status() for run in runs] == ["Completed"] * 2
    best = runs[0].get_best_run_by_primary_metric()
    assert max(best.get_metrics()["validation_acc"]) > 0.85
    assert Model(yard, name="tf-digits").run_id == best.id
    assert "service: tf-digits Healthy" in said
    assert "tf-digits" not in yard.webservices
