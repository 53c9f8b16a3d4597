"""Imports of files written by MLflow, TensorBoard and W&B themselves."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from import_support import import_from, points, row_of, runs_of
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runyard import Experiment, Workspace
from runyard.errors import UserErrorException
from runyard.exchange.detect import find_runs
from support import eventually

DATA = Path(__file__).parent / "data"


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
    ("states", "expected"),
    [
        (["Running", "Completed"], "Completed"),
        (["Running", "NotEnded"], "Failed"),
        (["NotEnded", "Running"], "Running"),
        (["Failed", "Running", "Completed"], "Completed"),  # resumed while it is watched
        (["Failed", "Completed"], "Completed"),  # resumed since the last import
        (["Canceled", "Completed"], "Completed"),
        (["Completed", "NotEnded"], "Completed"),
        (["Running", "canceled in the yard", "Running", "Completed"], "Canceled"),
    ],
)
def test_the_state_of_an_imported_run_follows_its_source(
    workspace: Workspace, experiment: Experiment, states: list[str], expected: str
) -> None:
    connection = workspace.connection
    run_id = f"{experiment.name}-imported"
    request = {"run_id": run_id, "experiment": experiment.name, "name": "one", "source": "wandb", "created_at": 100.0}
    for index, state in enumerate(states):
        if state == "canceled in the yard":
            connection.post(f"/api/runs/{run_id}/cancel")
            eventually(lambda: connection.get(f"/api/runs/{run_id}")["status"] == "Canceled", "it is canceled")
            continue
        ended_at = None if state in ("Running", "NotEnded") else 200.0 + index
        connection.post("/api/runs/import", {**request, "status": state, "ended_at": ended_at})
    view = connection.get(f"/api/runs/{run_id}")
    assert view["status"] == expected


def test_a_run_ends_after_its_points_have_arrived(workspace: Workspace, experiment: Experiment) -> None:
    connection = workspace.connection
    run_id = f"{experiment.name}-ordered"
    request = {
        "run_id": run_id,
        "experiment": experiment.name,
        "name": "one",
        "source": "wandb",
        "created_at": 100.0,
        "status": "Completed",
        "ended_at": 200.0,
    }
    for count in (1, 2):  # the second one finds the run of an import that was interrupted
        result = connection.post("/api/runs/import", {**request, "data_follows": True})
        assert (result["created"], result["is_pending"]) == (count == 1, True)
        assert connection.get(f"/api/runs/{run_id}")["status"] == "Running"
    assert connection.post("/api/runs/import", request)["changed"] is True
    assert connection.get(f"/api/runs/{run_id}")["status"] == "Completed"
    result = connection.post("/api/runs/import", {**request, "data_follows": True})
    assert (result["changed"], result["is_pending"]) == (False, False)


def test_an_older_copy_does_not_change_the_end(workspace: Workspace, experiment: Experiment) -> None:
    request = {"run_id": f"{experiment.name}-copy", "experiment": experiment.name, "name": "one", "source": "mlflow"}
    for status, ended_at in (("Completed", 300.0), ("Failed", 200.0)):
        body = {**request, "created_at": 100.0, "status": status, "ended_at": ended_at}
        result = workspace.connection.post("/api/runs/import", body)
    assert result["changed"] is False
    assert workspace.connection.get(f"/api/runs/{request['run_id']}")["status"] == "Completed"


def test_an_invalid_model_is_refused(workspace: Workspace) -> None:
    request = {
        "model_id": "m-invalid",
        "experiment": "models",
        "name": "net",
        "status": 2,
        "source": "mlflow",
        "created_at": 1.0,
        "changed_at": 1.0,
        "metrics": [{"name": "loss", "step": 0, "time": math.inf, "value": 0.5}],
    }
    with pytest.raises(UserErrorException, match="must be finite numbers"):
        workspace.connection.post("/api/logged-models/import", request)
    with pytest.raises(UserErrorException, match="invalid model id"):
        workspace.connection.post("/api/logged-models/import", {**request, "model_id": "../m"})


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
