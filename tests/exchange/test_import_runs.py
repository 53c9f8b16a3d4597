"""Imports of files written by MLflow, TensorBoard and W&B themselves."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from import_support import import_from, points, row_of, runs_of
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runyard import Experiment, Run, Workspace
from runyard.errors import UserErrorException
from runyard.exchange.detect import find_runs
from runyard.exchange.import_runs import import_runs

DATA = Path(__file__).parent / "data"

MLFLOW_SCRIPT = """
import sys
import mlflow

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
try:
    with mlflow.start_run(run_name="broken"):
        raise ValueError
except ValueError:
    pass
with mlflow.start_run(run_name="deleted") as deleted:
    pass
mlflow.delete_run(deleted.info.run_id)
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


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "path"), [("files", "mlruns"), ("files", ""), ("database", "mlflow.db"), ("database", "")]
)
def test_mlflow_runs_keep_their_data(workspace: Workspace, mlflow_files: Path, kind: str, path: str) -> None:
    path_to_import = mlflow_files / kind / path
    import_from(workspace, "mlflow", path_to_import)
    repeated = import_from(workspace, "mlflow", path_to_import)
    assert (repeated.created, repeated.updated, repeated.unchanged, repeated.points, repeated.files) == (0, 0, 3, 0, 0)
    ids = {run.run_id for run in find_runs("mlflow", path_to_import)}
    runs = {run.name: run for run in runs_by_id(workspace, ids)}
    assert sorted(runs) == ["broken", "child", "parent"]
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


def runs_by_id(workspace: Workspace, ids: set[str]) -> list[Run]:
    runs = []
    for name, experiment in workspace.experiments.items():
        if name.startswith("digits-more"):
            runs += [run for run in experiment.get_runs(include_children=True) if run.id in ids]
    return runs


@pytest.mark.real
def test_a_repeated_import_adds_the_new_data_of_a_run(workspace: Workspace, mlflow_files: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mlruns"
    shutil.copytree(mlflow_files / "files" / "mlruns", copy)
    meta = next(path for path in copy.rglob("meta.yaml") if "run_name: parent" in path.read_text())
    other_id = "f" * 32
    text = meta.read_text().replace(meta.parent.name, other_id).replace("status: 3", "status: 1")
    meta.write_text("\n".join(line for line in text.splitlines() if not line.startswith("end_time")))
    meta.parent.rename(meta.parent.with_name(other_id))
    folder = copy.rglob(other_id).__next__()
    first = [run for run in find_runs("mlflow", copy) if run.run_id == other_id]
    assert import_runs(workspace.connection, first).created == 1
    experiment = next(name for name in workspace.experiments if name.startswith("digits-more"))
    run = Run(Experiment(workspace, experiment), other_id)
    assert run.get_status() == "Failed"
    assert "had not ended" in run.get_details()["error"]["error"]["message"]

    with open(folder / "metrics" / "train" / "loss", "a") as lines:
        lines.write("1700000001000 0.05 100\n")
    (folder / "params" / "late").write_text("1")
    (folder / "meta.yaml").write_text(text.replace("status: 1", "status: 3"))
    second = [run for run in find_runs("mlflow", copy) if run.run_id == other_id]
    counts = import_runs(workspace.connection, second)
    assert (counts.created, counts.updated, counts.points) == (0, 1, 1)
    assert points(run, "train/loss")[-1] == (100, 1_700_000_001.0, 0.05)
    assert row_of(workspace, run)["params"]["late"] == 1
    assert Run(run.experiment, other_id).get_status() == "Completed"


def test_each_folder_of_event_files_becomes_a_run(workspace: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "boards"
    for name, factor in (("train", 1.0), ("val", 2.0)):
        writer = EventFileWriter(str(root / name))
        for step in range(20):
            value = Summary.Value(tag="loss", simple_value=factor / (step + 1))
            writer.add_event(Event(wall_time=1_700_000_000 + step, step=step, summary=Summary(value=[value])))
        writer.close()
    assert import_from(workspace, "tensorboard", root).created == 2
    repeated = import_from(workspace, "tensorboard", root)
    assert (repeated.created, repeated.updated, repeated.unchanged) == (0, 0, 2)
    runs = runs_of(workspace, "boards")
    assert sorted(runs) == ["train", "val"]
    values = points(runs["val"], "loss")
    assert values[:2] == [(0, 1_700_000_000.0, 2.0), (1, 1_700_000_001.0, 1.0)]
    assert len(values) == 20
    (file,) = runs["val"].get_file_names()
    assert file.startswith("logs/events.out.tfevents.")
    row = row_of(workspace, runs["val"])
    assert (row["created_at"], row["ended_at"]) == (1_700_000_000.0, 1_700_000_019.0)


def test_offline_runs_of_wandb(workspace: Workspace, tmp_path: Path) -> None:
    """The file was written by W&B 0.31."""
    folder = tmp_path / "wandb" / "offline-run-20261116_005408-abc123"
    (folder / "files").mkdir(parents=True)
    shutil.copy(DATA / "run-abc123.wandb", folder)
    (folder / "files" / "requirements.txt").write_text("numpy==2.0\n")
    assert import_from(workspace, "wandb-offline", tmp_path).created == 1
    repeated = import_from(workspace, "wandb-offline", folder / "run-abc123.wandb")
    assert (repeated.created, repeated.updated, repeated.unchanged) == (0, 0, 1)
    (run,) = runs_of(workspace, next(name for name in workspace.experiments if name.startswith("my-digits"))).values()
    assert (run.name, run.get_status()) == ("first try", "Completed")
    assert run.tags == {
        "wandb.id": "abc123",
        "wandb.group": "g1",
        "wandb.notes": "a note",
        "wandb.host": "a-host",
        "baseline": "",
    }
    assert row_of(workspace, run)["params"] == {"lr": 0.1, "model.depth": 3, "name": "cnn"}
    assert [(step, value) for step, _, value in points(run, "loss")] == [(step, 1 / (step + 1)) for step in range(10)]
    assert [step for step, _, _ in points(run, "sparse")] == [50]
    odd = [value for _, _, value in points(run, "odd")]
    assert math.isnan(odd[0])
    assert odd[1] == math.inf
    assert points(run, "val.acc")[-1][2] == 0.9
    assert points(run, "loss")[0][1] == pytest.approx(1_794_790_449.78, abs=0.01)
    assert run.get_file_names() == ["requirements.txt"]


def test_a_truncated_wandb_file_is_read_up_to_its_end(tmp_path: Path) -> None:
    data = (DATA / "run-abc123.wandb").read_bytes()
    (tmp_path / "run-abc123.wandb").write_bytes(data[: len(data) * 2 // 3])
    (run,) = find_runs("wandb-offline", tmp_path)
    assert run.status == "NotEnded"
    assert 0 < len(next(series for series in run.series() if series.name == "loss").values) <= 10


def test_a_link_that_the_log_does_not_name_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "wandb" / "offline-run-20261116_005408-abc123"
    (folder / "files").mkdir(parents=True)
    shutil.copy(DATA / "run-abc123.wandb", folder)
    (tmp_path / "secret").write_text("secret")
    (folder / "files" / "link").symlink_to(tmp_path / "secret")
    (run,) = find_runs("wandb-offline", tmp_path)
    assert list(run.files) == []


def test_an_import_never_overwrites_a_run_of_the_yard(workspace: Workspace, experiment: Experiment) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.complete()
    request = {
        "run_id": run.id,
        "experiment": experiment.name,
        "name": "other",
        "status": "Failed",
        "source": "mlflow",
        "created_at": 1.0,
    }
    with pytest.raises(UserErrorException, match="was not imported from mlflow"):
        workspace.connection.post("/api/runs/import", request)
    assert run.get_status() == "Completed"


@pytest.mark.parametrize(
    ("source", "files", "message"),
    [
        ("mlflow", {}, "no MLflow runs in"),
        ("mlflow", {"mlflow.db": b"not a database, but long enough"}, "file is not a database"),
        ("tensorboard", {"notes.txt": b""}, "no TensorBoard event files"),
        ("tensorboard", {"events.out.tfevents.1": b"\x18" + bytes(30)}, "is damaged at byte 0"),
        ("wandb-offline", {}, "no run-….wandb at or below"),
        ("wandb-offline", {"run-a.wandb": b"something else"}, "is not a supported W&B file"),
        ("aim", {}, "got 'aim'"),
    ],
)
def test_invalid_sources_are_refused(tmp_path: Path, source: str, files: dict[str, bytes], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserErrorException, match=message):
        list(find_runs(source, tmp_path))
