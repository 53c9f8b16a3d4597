"""Runs of other programs, as those programs themselves left them on disk."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runyard import Experiment, Run, Workspace
from runyard.errors import UserErrorException
from runyard.exchange.detect import find_runs
from runyard.exchange.import_runs import Tally, import_runs

DATA = Path(__file__).parent / "data"

BY_MLFLOW = """
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
def left_by_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: `files` with mlruns, `database` with mlflow.db."""
    root = tmp_path_factory.mktemp("mlflow")
    for name, uri in (("files", "{}/mlruns"), ("database", "sqlite:///{}/mlflow.db")):
        (root / name).mkdir()
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", BY_MLFLOW, uri.format(root / name)],
            cwd=root / name,
            env={**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"},
            check=True,
            capture_output=True,
        )
    return root


def take(workspace: Workspace, source: str, path: Path) -> Tally:
    return import_runs(workspace.connection, find_runs(source, path))


def runs_of(workspace: Workspace, experiment: str) -> dict[str, Run]:
    runs = Experiment(workspace, experiment).get_runs(include_children=True)
    return {run.name: run for run in runs}


def points(run: Run, name: str) -> list[tuple[int, float, float]]:
    from runyard.wire.points import decode_points

    found = decode_points(run.experiment.workspace.connection.read(f"/api/runs/{run.id}/metrics/{name}"))
    return list(zip(found.steps, found.times, found.values))


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "path"), [("files", "mlruns"), ("files", ""), ("database", "mlflow.db"), ("database", "")]
)
def test_runs_of_mlflow_keep_what_they_had(workspace: Workspace, left_by_mlflow: Path, kind: str, path: str) -> None:
    place = left_by_mlflow / kind / path
    take(workspace, "mlflow", place)
    again = take(workspace, "mlflow", place)
    assert (again.new, again.grown, again.same, again.points, again.files) == (0, 0, 3, 0, 0)
    ids = {run.run_id for run in find_runs("mlflow", place)}
    runs = {run.name: run for run in runs_of_ids(workspace, ids)}
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


def runs_of_ids(workspace: Workspace, ids: set[str]) -> list[Run]:
    found = []
    for name, experiment in workspace.experiments.items():
        if name.startswith("digits-more"):
            found += [run for run in experiment.get_runs(include_children=True) if run.id in ids]
    return found


@pytest.mark.real
def test_an_import_that_broke_off_goes_on_and_a_run_that_grew_is_caught_up_with(
    workspace: Workspace, left_by_mlflow: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "mlruns"
    shutil.copytree(left_by_mlflow / "files" / "mlruns", copy)
    meta = next(path for path in copy.rglob("meta.yaml") if "run_name: parent" in path.read_text())
    other_id = "f" * 32
    told = meta.read_text().replace(meta.parent.name, other_id).replace("status: 3", "status: 1")
    meta.write_text("\n".join(line for line in told.splitlines() if not line.startswith("end_time")))
    meta.parent.rename(meta.parent.with_name(other_id))
    folder = copy.rglob(other_id).__next__()
    first = [run for run in find_runs("mlflow", copy) if run.run_id == other_id]
    assert import_runs(workspace.connection, first).new == 1
    experiment = next(name for name in workspace.experiments if name.startswith("digits-more"))
    run = Run(Experiment(workspace, experiment), other_id)
    assert run.get_status() == "Failed"
    assert "had not ended" in run.get_details()["error"]["error"]["message"]

    with open(folder / "metrics" / "train" / "loss", "a") as lines:
        lines.write("1700000001000 0.05 100\n")
    (folder / "params" / "late").write_text("1")
    (folder / "meta.yaml").write_text(told.replace("status: 1", "status: 3"))
    grown = [found for found in find_runs("mlflow", copy) if found.run_id == other_id]
    tally = import_runs(workspace.connection, grown)
    assert (tally.new, tally.grown, tally.points) == (0, 1, 1)
    assert points(run, "train/loss")[-1] == (100, 1_700_000_001.0, 0.05)
    assert row_of(workspace, run)["params"]["late"] == 1
    assert Run(run.experiment, other_id).get_status() == "Completed"


def row_of(workspace: Workspace, run: Run) -> dict[str, object]:
    rows = workspace.connection.get("/api/runs/table", experiment=run.experiment.name, limit=1000)["rows"]
    found: dict[str, object] = next(row for row in rows if row["run_id"] == run.id)
    return found


def test_event_files_of_tensorboard_become_runs_by_folder(workspace: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "boards"
    for name, factor in (("train", 1.0), ("val", 2.0)):
        writer = EventFileWriter(str(root / name))
        for step in range(20):
            value = Summary.Value(tag="loss", simple_value=factor / (step + 1))
            writer.add_event(Event(wall_time=1_700_000_000 + step, step=step, summary=Summary(value=[value])))
        writer.close()
    assert take(workspace, "tensorboard", root).new == 2
    again = take(workspace, "tensorboard", root)
    assert (again.new, again.grown, again.same) == (0, 0, 2)
    runs = runs_of(workspace, "boards")
    assert sorted(runs) == ["train", "val"]
    found = points(runs["val"], "loss")
    assert found[:2] == [(0, 1_700_000_000.0, 2.0), (1, 1_700_000_001.0, 1.0)]
    assert len(found) == 20
    (file,) = runs["val"].get_file_names()
    assert file.startswith("logs/events.out.tfevents.")
    row = row_of(workspace, runs["val"])
    assert (row["created_at"], row["ended_at"]) == (1_700_000_000.0, 1_700_000_019.0)


def test_runs_that_wandb_wrote_offline(workspace: Workspace, tmp_path: Path) -> None:
    """The file was written by W&B 0.31 itself."""
    folder = tmp_path / "wandb" / "offline-run-20261116_005408-abc123"
    (folder / "files").mkdir(parents=True)
    shutil.copy(DATA / "run-abc123.wandb", folder)
    (folder / "files" / "requirements.txt").write_text("numpy==2.0\n")
    assert take(workspace, "wandb-offline", tmp_path).new == 1
    again = take(workspace, "wandb-offline", folder / "run-abc123.wandb")
    assert (again.new, again.grown, again.same) == (0, 0, 1)
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


def test_a_file_of_wandb_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = (DATA / "run-abc123.wandb").read_bytes()
    (tmp_path / "run-abc123.wandb").write_bytes(data[: len(data) * 2 // 3])
    (run,) = find_runs("wandb-offline", tmp_path)
    assert run.status == "NotEnded"
    assert 0 < len(next(curve for curve in run.curves() if curve.name == "loss").values) <= 10


def test_a_run_of_the_yards_own_is_never_taken_for_an_imported_one(
    workspace: Workspace, experiment: Experiment
) -> None:
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
    ("source", "make", "said"),
    [
        ("mlflow", {}, "there are no runs of MLflow in"),
        ("mlflow", {"mlflow.db": b"not a database, but long enough"}, "file is not a database"),
        ("tensorboard", {"notes.txt": b""}, "there are no event files of TensorBoard"),
        ("tensorboard", {"events.out.tfevents.1": b"\x18" + bytes(30)}, "is damaged at byte 0"),
        ("wandb-offline", {}, "there is no run-….wandb at or below"),
        ("wandb-offline", {"run-a.wandb": b"something else"}, "is no file of W&B's"),
        ("aim", {}, "nothing is known of 'aim'"),
    ],
)
def test_what_cannot_be_imported_is_named(tmp_path: Path, source: str, make: dict[str, bytes], said: str) -> None:
    for name, content in make.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserErrorException, match=said):
        list(find_runs(source, tmp_path))
