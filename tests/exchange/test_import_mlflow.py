"""Imports of MLflow's file store and database, compared with what MLflow's own client reads from both sides."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from import_support import import_from, points, row_of
from mlflow import MlflowClient

from runyard import Experiment, Run, Workspace
from runyard.exchange.detect import find_runs
from runyard.exchange.foreign_run import ForeignRun
from runyard.exchange.import_runs import import_runs

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]  # MLflow creates its database with dozens of migrations

MLFLOW_SCRIPT = """
import sys
import mlflow
import mlflow.pyfunc
import pandas

def identity(model_input: list[str]) -> list[str]:
    return model_input

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("digits & more")
with mlflow.start_run(run_name="parent", tags={"team": "vision"}):
    mlflow.log_params({"lr": 0.1, "model/type": "cnn"})
    for step in range(10):
        mlflow.log_metric("train/loss", 1 / (step + 1), step=step * 10, timestamp=1_700_000_000_123 + step)
    for step, value in enumerate((float("nan"), float("inf"), float("-inf"))):
        mlflow.log_metric("odd", value, step=step, timestamp=1_700_000_000_000 + step)
    mlflow.log_text("hello", "notes/hello.txt")
    with mlflow.start_run(run_name="child", nested=True):
        mlflow.log_metric("loss", 0.5)
with mlflow.start_run(run_name="trainer"):
    mlflow.log_metric("loss", 0.125)
    table = pandas.DataFrame({"x": [1, 2], "y": [3.5, 4.0]})
    dataset = mlflow.data.from_pandas(table, source="train.csv", name="train-set", targets="y")
    mlflow.log_input(dataset, context="training", tags={"origin": "test"})
    model = mlflow.pyfunc.log_model(
        name="net", python_model=identity, params={"depth": 3}, tags={"kind": "small"}, model_type="classifier",
        pip_requirements=[], input_example=["a"],
    )
    for step, accuracy in enumerate((0.25, 0.75, 0.5)):
        mlflow.log_metric("accuracy", accuracy, step=step, model_id=model.model_id, dataset=dataset)
    mlflow.log_metric("size", 12, model_id=model.model_id)
try:
    with mlflow.start_run(run_name="broken"):
        raise ValueError
except ValueError:
    pass
with mlflow.start_run(run_name="deleted") as deleted:
    pass
mlflow.delete_run(deleted.info.run_id)
mlflow.create_external_model(name="external", params={"a": "b"}, tags={"host": "elsewhere"})
gone = mlflow.create_external_model(name="gone")
mlflow.MlflowClient().delete_logged_model(gone.model_id)
"""


@pytest.fixture(scope="module")
def mlflow_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: `files` with mlruns, `database` with mlflow.db."""
    root = tmp_path_factory.mktemp("mlflow")
    for name, uri in (("files", "{}/mlruns"), ("database", "sqlite:///{}/mlflow.db")):
        (root / name).mkdir()
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MLFLOW_SCRIPT, uri.format(root / name)],
            cwd=root / name,
            env={**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"},
            check=True,
            capture_output=True,
        )
    return root


@pytest.mark.parametrize(
    ("kind", "path"), [("files", "mlruns"), ("files", ""), ("database", "mlflow.db"), ("database", "")]
)
def test_mlflow_runs_keep_their_data(workspace: Workspace, mlflow_files: Path, kind: str, path: str) -> None:
    path_to_import = mlflow_files / kind / path
    import_from(workspace, "mlflow", path_to_import)
    repeated = import_from(workspace, "mlflow", path_to_import)
    assert (repeated.created, repeated.updated, repeated.unchanged, repeated.points, repeated.files) == (0, 0, 4, 0, 0)
    ids = {run.run_id for run in find_runs("mlflow", path_to_import) if isinstance(run, ForeignRun)}
    runs = {run.name: run for run in runs_by_id(workspace, ids)}
    assert sorted(runs) == ["broken", "child", "parent", "trainer"]
    parent = runs["parent"]
    assert parent.get_status() == "Completed"
    assert parent.tags["team"] == "vision"
    losses = points(parent, "train/loss")
    assert [(step, value) for step, _, value in losses] == [(step * 10, 1 / (step + 1)) for step in range(10)]
    assert [time for _, time, _ in losses] == [(1_700_000_000_123 + step) / 1000 for step in range(10)]
    odd = [value for _, _, value in points(parent, "odd")]
    assert math.isnan(odd[0])
    assert odd[1:] == [math.inf, -math.inf]
    assert parent.get_file_names() == ["notes/hello.txt"]
    assert [child.name for child in parent.get_children()] == ["child"]
    assert runs["broken"].get_status() == "Failed"
    row = row_of(workspace, parent)
    assert row["params"] == {"lr": 0.1, "model/type": "cnn"}
    assert row["created_at"] <= row["ended_at"] < row["created_at"] + 600


def imported_run(root: Path, run_id: str) -> list[ForeignRun]:
    return [run for run in find_runs("mlflow", root) if isinstance(run, ForeignRun) and run.run_id == run_id]


def runs_by_id(workspace: Workspace, ids: set[str]) -> list[Run]:
    runs = []
    for name, experiment in workspace.experiments.items():
        if name.startswith("digits-more"):
            runs += [run for run in experiment.get_runs(include_children=True) if run.id in ids]
    return runs


def test_a_repeated_import_adds_the_new_data_of_a_run(workspace: Workspace, mlflow_files: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mlruns"
    shutil.copytree(mlflow_files / "files" / "mlruns", copy)
    meta = next(path for path in copy.rglob("meta.yaml") if "run_name: parent" in path.read_text())
    other_id = "f" * 32
    text = meta.read_text().replace(meta.parent.name, other_id).replace("status: 3", "status: 1")
    meta.write_text("\n".join(line for line in text.splitlines() if not line.startswith("end_time")))
    meta.parent.rename(meta.parent.with_name(other_id))
    folder = copy.rglob(other_id).__next__()
    first = imported_run(copy, other_id)
    assert import_runs(workspace.connection, first).created == 1
    experiment = next(name for name in workspace.experiments if name.startswith("digits-more"))
    run = Run(Experiment(workspace, experiment), other_id)
    assert run.get_status() == "Failed"
    assert "had not ended" in run.get_details()["error"]["error"]["message"]

    with open(folder / "metrics" / "train" / "loss", "a") as lines:
        lines.write("1700000001000 0.05 100\n")
    (folder / "params" / "late").write_text("1")
    (folder / "meta.yaml").write_text(text.replace("status: 1", "status: 3"))
    second = imported_run(copy, other_id)
    counts = import_runs(workspace.connection, second)
    assert (counts.created, counts.updated, counts.points) == (0, 1, 1)
    assert points(run, "train/loss")[-1] == (100, 1_700_000_001.0, 0.05)
    assert row_of(workspace, run)["params"]["late"] == 1
    assert Run(run.experiment, other_id).get_status() == "Completed"


@pytest.fixture
def yard_client(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowClient]:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")  # restored after the test, because the workspace sets it
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return MlflowClient(workspace.get_mlflow_tracking_uri())


@pytest.mark.parametrize("kind", ["files", "database"])
def test_mlflow_reads_the_same_from_the_source_and_from_the_yard(
    workspace: Workspace, mlflow_files: Path, yard_client: MlflowClient, kind: str, tmp_path: Path
) -> None:
    import_from(workspace, "mlflow", mlflow_files / kind)
    source = MlflowClient(store_uri(mlflow_files, kind))
    experiment = source.get_experiment_by_name("digits & more")
    runs = source.search_runs([experiment.experiment_id])
    assert len(runs) == 4
    for run in runs:
        compare_runs(source, yard_client, run.info.run_id, tmp_path)
    models = source.search_logged_models([experiment.experiment_id])
    assert sorted(model.name for model in models) == ["external", "net"]
    for model in models:
        compare_models(source, yard_client, model.model_id)
    (net,) = (model for model in models if model.name == "net")
    content = download(yard_client, net.source_run_id, f"models/{net.model_id}/MLmodel", tmp_path)
    assert content == (artifact_folder(net.artifact_location) / "MLmodel").read_bytes()
    (external,) = (model for model in models if model.name == "external")
    names = [file.path for file in yard_client.list_logged_model_artifacts(external.model_id)]
    assert names == ["MLmodel"]


def test_a_logged_model_that_continues_is_updated(workspace: Workspace, mlflow_files: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mlruns"
    shutil.copytree(mlflow_files / "files" / "mlruns", copy)
    (folder,) = (path.parent for path in copy.rglob("models/*/meta.yaml") if "name: net" in path.read_text())
    import_from(workspace, "mlflow", copy)
    (folder / "tags" / "late").write_text("1")
    metric = folder / "metrics" / "accuracy"
    metric.write_text(f"{metric.read_text()}1800000000000 0.875 9 {'f' * 32}\n")
    counts = import_from(workspace, "mlflow", copy)
    assert (counts.models, counts.unchanged_models, counts.points, counts.files) == (1, 1, 0, 0)
    counts = import_from(workspace, "mlflow", copy)
    assert (counts.models, counts.unchanged_models) == (0, 2)


def compare_runs(source: MlflowClient, yard: MlflowClient, run_id: str, tmp_path: Path) -> None:
    expected, actual = source.get_run(run_id), yard.get_run(run_id)
    for name in ("run_name", "status", "start_time", "end_time", "user_id", "lifecycle_stage"):
        assert getattr(actual.info, name) == getattr(expected.info, name)
    assert actual.data.params == expected.data.params
    assert expected.data.tags.items() <= actual.data.tags.items()
    assert sorted(actual.data.metrics) == sorted(expected.data.metrics)
    for name, value in expected.data.metrics.items():
        assert repr(actual.data.metrics[name]) == number_text(value), name
        if name == "accuracy":  # MLflow's file store loses the steps of metrics with a dataset when it reads them
            assert [(step, value) for step, _, value in history(yard, run_id, name)] == [
                (0, "0.25"),
                (1, "0.75"),
                (2, "0.5"),
            ]
        else:
            assert history(yard, run_id, name) == history(source, run_id, name)
    assert inputs(actual) == inputs(expected)
    outputs = [(model.model_id, model.step) for model in expected.outputs.model_outputs]
    assert [(model.model_id, model.step) for model in actual.outputs.model_outputs] == outputs
    for path in files(source, run_id):
        assert download(yard, run_id, path, tmp_path / "yard") == download(source, run_id, path, tmp_path / "source")


def compare_models(source: MlflowClient, yard: MlflowClient, model_id: str) -> None:
    expected, actual = source.get_logged_model(model_id), yard.get_logged_model(model_id)
    names = ("name", "model_type", "status", "source_run_id", "creation_timestamp", "params", "tags")
    for name in (*names, "last_updated_timestamp"):
        assert (getattr(actual, name) or None) == (getattr(expected, name) or None), name
    assert metrics_of(actual) == metrics_of(expected)


def metrics_of(model: Any) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The last value of each metric and dataset; the client of MLflow's database returns all of them."""
    newest = {}
    for metric in sorted(model.metrics or (), key=lambda metric: (metric.step, metric.timestamp)):
        key = (metric.key, f"{metric.dataset_name} {metric.dataset_digest}")
        newest[key] = (metric.step, metric.timestamp, metric.run_id, number_text(metric.value))
    return newest


def history(client: MlflowClient, run_id: str, name: str) -> list[tuple[int, int, str]]:
    return sorted(
        (point.step, point.timestamp, number_text(point.value)) for point in client.get_metric_history(run_id, name)
    )


def number_text(value: float) -> str:
    """MLflow's database has the largest number instead of infinity."""
    return repr(math.copysign(math.inf, value) if abs(value) >= sys.float_info.max else value)


def inputs(run: Any) -> list[tuple[dict[str, Any], list[tuple[str, str]]]]:
    return [
        (item.dataset.to_dictionary(), sorted((tag.key, tag.value) for tag in item.tags))
        for item in run.inputs.dataset_inputs
    ]


def files(client: MlflowClient, run_id: str, folder: str = "") -> list[str]:
    names = []
    for file in client.list_artifacts(run_id, folder):
        names += files(client, run_id, file.path) if file.is_dir else [file.path]
    return names


def download(client: MlflowClient, run_id: str, path: str, folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    return Path(client.download_artifacts(run_id, path, str(folder))).read_bytes()


def artifact_folder(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def store_uri(root: Path, kind: str) -> str:
    return str(root / kind / "mlruns") if kind == "files" else f"sqlite:///{root / kind / 'mlflow.db'}"
