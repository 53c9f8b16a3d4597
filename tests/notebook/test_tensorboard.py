"""TensorBoard, the real one: what it shows of runs, what is exported to it, and what is read without it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from runyard import Experiment, Run, Tensorboard, export_to_tensorboard
from runyard.errors import UserErrorException
from support import eventually, is_alive, with_this_python, yard_pid

# writes an event whenever it is told to by a file, and ends when it is told that
SCRIPT = """
import sys, time
from pathlib import Path
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("logs/train")
told, step = Path(sys.argv[1]), 0
while True:
    wanted, _, last = told.read_text().partition(" ")
    while step < int(wanted):
        value = Summary.Value(tag="loss", simple_value=float(step))
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
        step += 1
    writer.flush()
    if last:
        break
    time.sleep(0.02)
writer.close()
"""


class Told:
    """A running script that writes as many events as it is told."""

    def __init__(self, run: Run, path: Path) -> None:
        self.run, self._path = run, path

    def write(self, events: int, *, last: bool = False) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{events} last" if last else str(events))
        fresh.rename(self._path)  # the script never reads half a number


@pytest.fixture
def told(experiment: Experiment, project: Any, tmp_path: Path) -> Iterator[Told]:
    path = tmp_path / "told"
    path.write_text("0")
    run = experiment.submit(with_this_python(project(train=SCRIPT), arguments=[str(path)]))
    told = Told(run, path)
    yield told
    told.write(0, last=True)
    run.wait_for_completion(raise_on_error=False)


def losses(run: Run) -> list[float]:
    found = run.get_metrics().get("logs/train/loss", [])
    return found if isinstance(found, list) else [found]


@pytest.mark.real
def test_event_files_are_charts_while_they_are_written_and_survive_a_killed_yard(told: Told, home: Path) -> None:
    told.write(3)
    eventually(lambda: losses(told.run) == [0.0, 1.0, 2.0], "three events are points")
    pid = yard_pid(home)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the yard is gone")
    told.write(7)
    eventually(lambda: losses(told.run) == [float(step) for step in range(7)], "the next yard reads on")
    told.write(9, last=True)
    told.run.wait_for_completion()
    assert losses(told.run) == [float(step) for step in range(9)]
    assert any("tfevents" in name for name in told.run.get_file_names())


@pytest.mark.real
def test_tensorboard_shows_what_a_run_writes_as_it_writes_it(told: Told, tmp_path: Path) -> None:
    """B11.68, B15.104: files under logs are read while the run goes on."""
    told.write(2)
    eventually(lambda: any("tfevents" in name for name in told.run.get_file_names()), "there is an event file")
    board = Tensorboard([told.run], local_root=str(tmp_path / "board"), port=0)
    try:
        address = board.start()
        assert address is not None
        assert board.start() is None

        def shown() -> int:
            asked = f"{address}data/plugin/scalars/scalars?run={told.run.id}%2Ftrain&tag=loss"
            try:
                with urllib.request.urlopen(asked, timeout=10) as answer:
                    return len(json.load(answer))
            except OSError:  # not known there yet
                return 0

        eventually(lambda: shown() == 2, "TensorBoard has two points", within_s=60)
        told.write(5)
        eventually(lambda: shown() == 5, "TensorBoard has all five", within_s=60)
    finally:
        board.stop()
        board.stop()
    with socket.socket() as closed, pytest.raises(ConnectionRefusedError):
        closed.connect(("127.0.0.1", int(address.rpartition(":")[2].strip("/"))))


def test_metrics_are_exported_as_tensorboard_reads_them(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B15.105."""
    monkeypatch.chdir(tmp_path)
    with experiment.start_logging(snapshot_directory=None) as run:
        for step in range(4):
            run.log("loss", 1.0 / (step + 1), step=10 * step, timestamp=1000.0 + step)
        run.log_list("no steps", [5, 6])
        run.log("word", "skipped")
        run.log_histogram("weights", [0.0, 1.0, 1.0, 4.0], bins=4, step=3)
        run.log_text("sample", "Once upon a time", step=1)
        with run.child_run() as child:
            child.log("child", 1.0)
        export_to_tensorboard(run, "board")  # also while it is open
    export_to_tensorboard([run], "board")
    read = EventAccumulator(str(tmp_path / "board" / run.id)).Reload()
    assert [(e.wall_time, e.step) for e in read.Scalars("loss")] == [(1000.0 + step, 10 * step) for step in range(4)]
    assert [e.value for e in read.Scalars("loss")] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert [(e.step, e.value) for e in read.Scalars("no steps")] == [(0, 5.0), (1, 6.0)]
    histogram = read.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num) == (0.0, 4.0, 4.0)
    assert list(histogram.bucket) == [0.0, 1.0, 2.0, 0.0, 1.0]
    assert read.Tensors("sample")[0].tensor_proto.string_val[0] == b"Once upon a time"
    assert EventAccumulator(str(tmp_path / "board" / child.id)).Reload().Scalars("child")[0].value == 1.0


def test_what_was_exported_and_uploaded_becomes_series_of_another_run(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with experiment.start_logging(snapshot_directory=None) as first:
        first.log("loss", 0.5, step=7)
        first.log_histogram("weights", [0.0, 1.0], bins=2)
        first.log_text("sample", "Once")
    export_to_tensorboard(experiment, "board")
    with experiment.start_logging(snapshot_directory=None) as second:
        pass
    second.upload_folder("logs", f"board/{first.id}")  # also after its end, and twice
    second.upload_folder("logs", f"board/{first.id}")
    assert second.get_metrics() == {
        "logs/loss": 0.5,
        "logs/weights": {"bin_edges": [0.0, 0.5, 1.0], "bin_counts": [1.0, 1.0]},
        "logs/sample": "Once",
    }


def test_what_cannot_be_shown_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    """B15.104."""
    for wrong in ("run", 5):
        with pytest.raises(UserErrorException, match="must be a run, several runs, or an experiment"):
            export_to_tensorboard(wrong, str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(UserErrorException, match="needs runs or a folder"):
        Tensorboard([])
    with pytest.raises(UserErrorException, match="must contain runs, got a str"):
        Tensorboard(["id"])  # type: ignore[list-item]
    with pytest.raises(UserErrorException, match="port must be between"):
        Tensorboard([], local_root=str(tmp_path), port=70000)


def test_without_tensorboard_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    code = """
import sys
sys.modules['tensorboard'] = None
from importlib.util import find_spec
from runyard import Tensorboard
from runyard.errors import UserErrorException
try:
    Tensorboard([], local_root=sys.argv[1]).start()
except UserErrorException as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "pip install 'runyard[tensorboard]'" in done.stdout
