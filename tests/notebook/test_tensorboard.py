"""The real TensorBoard: live event files of runs, exported metrics, and event files read by the yard."""

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

# writes the number of events in a file, and ends when the file requests it
SCRIPT = """
import sys, time
from pathlib import Path
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("logs/train")
control, step = Path(sys.argv[1]), 0
while True:
    count, _, last = control.read_text().partition(" ")
    while step < int(count):
        value = Summary.Value(tag="loss", simple_value=float(step))
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
        step += 1
    writer.flush()
    if last:
        break
    time.sleep(0.02)
writer.close()
"""


class EventWriter:
    """A running script that writes the requested number of events."""

    def __init__(self, run: Run, path: Path) -> None:
        self.run, self._path = run, path

    def write(self, events: int, *, last: bool = False) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{events} last" if last else str(events))
        fresh.rename(self._path)  # the script never reads a partial number


@pytest.fixture
def writer(experiment: Experiment, project: Any, tmp_path: Path) -> Iterator[EventWriter]:
    path = tmp_path / "control"
    path.write_text("0")
    run = experiment.submit(with_this_python(project(train=SCRIPT), arguments=[str(path)]))
    writer = EventWriter(run, path)
    yield writer
    writer.write(0, last=True)
    run.wait_for_completion(raise_on_error=False)


def losses(run: Run) -> list[float]:
    values = run.get_metrics().get("logs/train/loss", [])
    return values if isinstance(values, list) else [values]


@pytest.mark.real
def test_event_files_become_charts_live_and_survive_a_killed_yard(writer: EventWriter, home: Path) -> None:
    writer.write(3)
    eventually(lambda: losses(writer.run) == [0.0, 1.0, 2.0], "three events are points")
    pid = yard_pid(home)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the yard is gone")
    writer.write(7)
    eventually(lambda: losses(writer.run) == [float(step) for step in range(7)], "the next yard reads on")
    writer.write(9, last=True)
    writer.run.wait_for_completion()
    assert losses(writer.run) == [float(step) for step in range(9)]
    assert any("tfevents" in name for name in writer.run.get_file_names())


@pytest.mark.real
def test_tensorboard_shows_event_files_live(writer: EventWriter, tmp_path: Path) -> None:
    """B11.68, B15.104: files under logs are read while the run is active."""
    writer.write(2)
    eventually(lambda: any("tfevents" in name for name in writer.run.get_file_names()), "there is an event file")
    board = Tensorboard([writer.run], local_root=str(tmp_path / "board"), port=0)
    try:
        address = board.start()
        assert address is not None
        assert board.start() is None

        def point_count() -> int:
            url = f"{address}data/plugin/scalars/scalars?run={writer.run.id}%2Ftrain&tag=loss"
            try:
                with urllib.request.urlopen(url, timeout=10) as response:
                    return len(json.load(response))
            except OSError:  # not known there yet
                return 0

        eventually(lambda: point_count() == 2, "TensorBoard has two points", within_s=60)
        writer.write(5)
        eventually(lambda: point_count() == 5, "TensorBoard has all five", within_s=60)
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


def test_exported_event_files_become_series_of_another_run(
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


def test_tensorboard_needs_runs_or_a_folder(experiment: Experiment, tmp_path: Path) -> None:
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


def test_without_tensorboard_the_error_names_the_package(tmp_path: Path) -> None:
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
