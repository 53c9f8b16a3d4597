"""Imports of offline runs that W&B has just written, compared with what the script logged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from import_support import import_from, points, row_of, runs_of

from runyard import Workspace
from runyard.wire.points import NO_STEP

pytestmark = pytest.mark.real

LOG = """
import json, os, pathlib, time
import wandb

pathlib.Path("work/sub").mkdir(parents=True)
pathlib.Path("work/model.bin").write_bytes(bytes(range(256)) * 10)
pathlib.Path("work/sub/notes.txt").write_text("notes")
pathlib.Path("gone.txt").write_text("deleted before the import")
written = {}
started_at = time.time()
run = wandb.init(
    project="number by number", name="first", group="g", job_type="train", notes="a note", tags=["baseline"],
    config={"lr": 0.1, "net": {"depth": 3, "act": "relu"}, "flags": [1, 2], "on": True},
)
for step in range(0, 200, 2):
    odd = (float("nan"), float("inf"), -float("inf"))[step % 3]
    values = {"loss": 1 / (step + 1), "train/acc": step / 7, "odd": odd, "val": {"f1": step * 1e-9}}
    run.log(values, step=step)
    for name, value in {**values, "val.f1": values["val"]["f1"]}.items():
        if name != "val":
            written.setdefault(name, []).append((step, value))
run.log({"table": wandb.Table(columns=["a", "b"], data=[[1, 2]])})
run.save("work/model.bin")
run.save("work/sub/*.txt", base_path="work", policy="now")
run.save("gone.txt", policy="end")
for version in range(2):
    artifact = wandb.Artifact("weights", type="model")
    pathlib.Path("work/weights.bin").write_bytes(b"weights" * (version + 1))
    artifact.add_file("work/weights.bin")
    run.log_artifact(artifact)
run.summary["best"] = 0.25
run.summary["loss"] = 0.5  # in the history already
run.finish()
os.remove("gone.txt")
json.dump([written, started_at, time.time()], open("written.json", "w"))
"""

RESUME = """
import wandb

for first in (0, 3):
    run = wandb.init(project="resumed", id="same-id", resume="allow")
    for step in range(first, first + 3):
        run.log({"loss": step / 2}, step=step)
    run.finish(exit_code=first)
    __import__("time").sleep(1.1)  # the name of the folder contains the second
"""


def test_every_number_and_file_of_a_run_is_imported(
    workspace: Workspace, run_script: Callable[[str], None], tmp_path: Path
) -> None:
    run_script(LOG)
    counts = import_from(workspace, "wandb-offline", tmp_path / "wandb")
    assert (counts.created, counts.points) == (1, 401)
    ((name, missing),) = counts.missing_files.items()
    assert name == "first"
    assert [text.split(" ")[0].rpartition("/")[2] for text in missing] == ["gone.txt"]
    repeated = import_from(workspace, "wandb-offline", tmp_path / "wandb")
    assert (repeated.created, repeated.updated, repeated.unchanged, repeated.points, repeated.files) == (0, 0, 1, 0, 0)

    experiment = next(name for name in workspace.experiments if name.startswith("number"))
    run = runs_of(workspace, experiment)["first"]
    written, started_at, ended_at = json.loads((tmp_path / "written.json").read_text())
    assert sorted(run.get_metrics()) == sorted([*written, "best"])
    for metric, rows in written.items():
        stored = points(run, metric)
        assert [(step, repr(value)) for step, _, value in stored] == [
            (step, repr(float(value))) for step, value in rows
        ]
        times = [time for _, time, _ in stored]
        assert times == sorted(times)
        assert started_at <= times[0] < times[-1] <= ended_at
    assert [(step, value) for step, _, value in points(run, "best")] == [(NO_STEP, 0.25)]
    assert run.get_params() == {"lr": "0.1", "net.depth": "3", "net.act": "relu", "flags": "[1, 2]", "on": "true"}
    tags = {"wandb.group": "g", "wandb.job_type": "train", "wandb.notes": "a note", "baseline": ""}
    assert tags.items() <= run.tags.items()
    assert run.get_status() == "Completed"
    row = row_of(workspace, run)
    assert started_at <= row["created_at"] <= row["ended_at"] <= ended_at

    contents = {
        "work/model.bin": bytes(range(256)) * 10,
        "sub/notes.txt": b"notes",
        "artifacts/weights/v0/weights.bin": b"weights",
        "artifacts/weights/v1/weights.bin": b"weights" * 2,
    }
    names = set(run.get_file_names())
    assert {*contents, "requirements.txt", "output.log"} <= names
    assert any(name.startswith("media/table/table_") for name in names)
    for file_name, content in contents.items():
        run.download_file(file_name, str(tmp_path / "download"))
        assert (tmp_path / "download").read_bytes() == content


def test_a_resumed_run_is_one_run(workspace: Workspace, run_script: Callable[[str], None], tmp_path: Path) -> None:
    run_script(RESUME)
    assert len(list((tmp_path / "wandb").glob("offline-run-*-same-id"))) == 2
    assert import_from(workspace, "wandb-offline", tmp_path).created == 1
    repeated = import_from(workspace, "wandb-offline", tmp_path)
    assert (repeated.unchanged, repeated.points) == (1, 0)
    (run,) = runs_of(workspace, "resumed").values()
    assert [(step, value) for step, _, value in points(run, "loss")] == [(step, step / 2) for step in range(6)]
    assert run.get_status() == "Failed"  # the exit code of the last process
