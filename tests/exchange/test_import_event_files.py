"""Imports of TensorBoard's event files, compared with what their writers wrote."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from import_support import import_from, points, row_of, runs_of
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runyard import Run, Workspace

WRITE = """
import json
from tensorboardX import SummaryWriter

written = {}
with SummaryWriter("summaries/one") as writer:
    for step in range(200):
        odd = (float("nan"), float("inf"), -float("inf"))[step % 3]
        for tag, value in (("train/loss", 1 / (step + 1)), ("odd", odd)):
            writer.add_scalar(tag, value, step * 10, walltime=1_700_000_000.25 + step)
            written.setdefault(tag, []).append((step * 10, 1_700_000_000.25 + step, value))
    writer.add_text("note", "hello", 1)
    writer.add_histogram("weights", __import__("numpy").arange(10.0), 1)
    writer.add_hparams({"lr": 0.1, "layers": 3, "optimizer": "adam", "nesterov": True}, {"hparam/accuracy": 0.75})
json.dump(written, open("written.json", "w"))
"""

SEVERAL_SESSIONS = """
from tensorboardX import SummaryWriter

with SummaryWriter("search-boards/search") as writer:
    writer.add_scalar("trials", 3, 0)
    for index in range(3):
        writer.add_hparams({"lr": 0.1 * 2**index}, {"hparam/accuracy": index / 4}, name=f"trial-{index}")
"""


def metric_names(run: Run) -> list[str]:
    return sorted(run.get_metrics())


@pytest.mark.real
def test_each_scalar_of_a_summary_writer_is_stored_once(
    workspace: Workspace, run_script: Callable[[str], None], tmp_path: Path
) -> None:
    run_script(WRITE)
    counts = import_from(workspace, "tensorboard", tmp_path / "summaries")
    assert (counts.created, counts.points, counts.files) == (1, 403, 2)
    repeated = import_from(workspace, "tensorboard", tmp_path / "summaries")
    assert (repeated.created, repeated.updated, repeated.unchanged, repeated.points, repeated.files) == (0, 0, 1, 0, 0)
    run = runs_of(workspace, "summaries")["one"]
    for tag, written in json.loads((tmp_path / "written.json").read_text()).items():
        stored = points(run, tag)
        assert [point[:2] for point in stored] == [(step, time) for step, time, _ in written]
        expected = [_as_float32(value) for _, _, value in written]
        assert list(map(repr, (value for _, _, value in stored))) == list(map(repr, expected))
    assert metric_names(run) == ["hparam/accuracy", "note/text_summary", "odd", "train/loss", "weights"]
    assert [value for _, _, value in points(run, "hparam/accuracy")] == [0.75]
    assert row_of(workspace, run)["params"] == {"lr": 0.1, "layers": 3, "optimizer": "adam", "nesterov": "true"}


@pytest.mark.real
def test_several_sessions_of_one_writer_become_child_runs(
    workspace: Workspace, run_script: Callable[[str], None], tmp_path: Path
) -> None:
    run_script(SEVERAL_SESSIONS)
    root = tmp_path / "search-boards"
    assert import_from(workspace, "tensorboard", root).created == 4
    runs = runs_of(workspace, "search-boards")
    children = {run.name: run for run in runs["search"].get_children()}
    assert sorted(children) == ["search/trial-0", "search/trial-1", "search/trial-2"]
    for index in range(3):
        child = children[f"search/trial-{index}"]
        assert row_of(workspace, child)["params"] == {"lr": pytest.approx(0.1 * 2**index)}
        assert [value for _, _, value in points(child, "hparam/accuracy")] == [index / 4]
    assert row_of(workspace, runs["search"])["params"] == {}


def test_two_files_that_grow_are_imported_without_gaps(workspace: Workspace, tmp_path: Path) -> None:
    """The files of a resumed run, or of two processes, are one series; each has its own position."""
    folder = tmp_path / "growing"
    writers = [EventFileWriter(str(folder), filename_suffix=f".{host}") for host in "ab"]
    for first in (0, 5, 10):
        for index, writer in enumerate(writers):
            for step in range(first, first + 5):
                value = Summary.Value(tag="loss", simple_value=step + index / 2)
                event = Event(wall_time=1_700_000_000 + step, step=step, summary=Summary(value=[value]))
                writer.add_event(event)
            writer.flush()
        assert import_from(workspace, "tensorboard", folder).points == 10
    for writer in writers:
        writer.close()
    run = runs_of(workspace, "growing")["growing"]
    assert sorted((step, value) for step, _, value in points(run, "loss")) == [
        (step, step + part) for step in range(15) for part in (0, 0.5)
    ]


def test_event_files_of_other_programs_do_not_repeat_their_metrics(workspace: Workspace, tmp_path: Path) -> None:
    """W&B with sync_tensorboard and the autolog of MLflow store both the metrics and the event files."""
    request = {
        "run_id": "with-event-files",
        "experiment": "event-files",
        "name": "one",
        "status": "Completed",
        "source": "wandb",
        "created_at": 1_700_000_000.0,
    }
    workspace.connection.post("/api/runs/import", request)
    writer = EventFileWriter(str(tmp_path))
    value = Summary.Value(tag="loss", simple_value=1.0)
    writer.add_event(Event(wall_time=1_700_000_000, step=1, summary=Summary(value=[value])))
    writer.close()
    (path,) = tmp_path.glob("*tfevents*")
    with open(path, "rb") as stream:
        workspace.connection.upload(f"/api/runs/with-event-files/files/{path.name}", stream)
    run = runs_of(workspace, "event-files")["one"]
    assert run.get_file_names() == [path.name]
    assert metric_names(run) == []


def _as_float32(value: float) -> float:
    """Event files contain scalars as 32-bit floats."""
    return value if math.isnan(value) else float(struct.unpack("<f", struct.pack("<f", value))[0])
