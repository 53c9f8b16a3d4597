"""A home that is moved while a run is active: the run's last points, log lines and its end are not lost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import Experiment, Run, Workspace
from support import a_home, eventually, run_view, stop_runs, stop_yard, with_this_python

pytestmark = pytest.mark.real

SCRIPT = """
import os, sys, time
from runyard import Run
run = Run.get_context()
run.log('before', 1)
print('before', flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for step in range(2000):
    run.log('after', step)
run.log('a new name', 'a text')
open('outputs/model.txt', 'w').write('weights')
print('after', flush=True)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


@pytest.fixture
def new_home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ry-")) / "h"
    yield folder
    stop_yard(folder)
    stop_runs(folder)
    shutil.rmtree(folder.parent, ignore_errors=True)


def start_and_move(
    home: Path, new_home: Path, experiment: Experiment, project, monkeypatch, gate: Path, code: int = 0
) -> Run:
    """Start a run, stop the yard, move the home, and open the run in the yard of the new home."""
    run = experiment.submit(with_this_python(project(train=SCRIPT), arguments=[str(gate), code]))
    log = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    eventually(lambda: log.exists() and "before" in log.read_text(), "the script waits")
    stop_yard(home)
    home.rename(new_home)
    monkeypatch.setenv("RUNYARD_HOME", str(new_home))
    return Run(Experiment(Workspace(), experiment.name), run.id)


@pytest.mark.parametrize("code", [0, 3])
def test_a_run_follows_its_moved_home(
    home: Path, new_home: Path, experiment: Experiment, project, monkeypatch, tmp_path: Path, code: int
) -> None:
    gate = tmp_path / "gate"
    run = start_and_move(home, new_home, experiment, project, monkeypatch, gate, code)
    assert run.get_status() == "Running"
    gate.touch()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == ("Completed" if code == 0 else "Failed")
    assert run_view(run)["end"]["exit_code"] == code
    metrics = run.get_metrics()
    assert metrics["before"] == 1
    assert metrics["after"] == list(range(2000))
    assert metrics["a new name"] == "a text"
    assert "outputs/model.txt" in run.get_file_names()
    log = new_home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    assert log.read_text().splitlines() == ["before", "after"]
    assert not home.exists()  # nothing was written to the old path


def test_a_run_in_a_moved_home_can_be_canceled(
    home: Path, new_home: Path, experiment: Experiment, project, monkeypatch, tmp_path: Path
) -> None:
    run = start_and_move(home, new_home, experiment, project, monkeypatch, tmp_path / "never")
    assert run.get_status() == "Running"
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"


def test_a_home_that_was_copied_and_deleted_is_named_as_the_reason(
    home: Path, new_home: Path, experiment: Experiment, project, monkeypatch, tmp_path: Path
) -> None:
    copy = new_home.parent / "copy"
    run = experiment.submit(with_this_python(project(train=SCRIPT), arguments=[str(tmp_path / "never"), 0]))
    eventually(lambda: run.get_status() == "Running", "the script waits")
    stop_yard(home)
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("*.sock"), symlinks=True)
    shutil.rmtree(home)
    copy.rename(new_home)
    monkeypatch.setenv("RUNYARD_HOME", str(new_home))
    moved = Run(Experiment(Workspace(), experiment.name), run.id)
    details = moved.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert str(home) in details["error"]["error"]["message"]
    assert str(new_home) in details["error"]["error"]["message"]
    assert run_view(moved)["end"]["processes_left"] == 0
    assert [folder.name for folder in (new_home / "runs").iterdir()] == [run.id]
