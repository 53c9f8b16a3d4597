"""The clock is set by a day, forward and back, while a sweep and runs with limits are active."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import Experiment
from runyard.hyperdrive import HyperDriveRun
from support import a_home, eventually, holds_for, stop_yard, with_this_python

pytestmark = pytest.mark.real

SOURCE = Path(__file__).with_name("settable_clock.c")
DAY_S = 86400
PATIENT = """\
import os, sys, time
from runyard import Run
run = Run.get_context()
run.log("score", 1.0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
run.log("score", 2.0)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clock") / "settable_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def set_clock(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """`set_clock(86400)` sets the clock of the yard, its agents and scripts, relative to the true time."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    with a_home() as folder, monkeypatch.context() as environment:
        environment.setenv("RUNYARD_HOME", str(folder))
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("SETTABLE_CLOCK", str(offset))

        def set_offset(seconds: int) -> None:
            draft = tmp_path / "offset.new"
            draft.write_text(str(seconds))
            draft.replace(offset)

        yield set_offset


@pytest.fixture
def home(set_clock: Callable[[int], None]) -> Path:
    return Path(os.environ["RUNYARD_HOME"])


def test_the_clock_can_be_set_without_changing_monotonic_time(set_clock: Callable[[int], None]) -> None:
    code = "import time; print(time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))"
    times = []
    for offset in (0, DAY_S):
        set_clock(offset)
        times.append([float(text) for text in subprocess.check_output([sys.executable, "-c", code]).split()])
    jump, *others = (after - before for before, after in zip(*times))
    assert jump > DAY_S - 1
    assert all(passed < 3600 for passed in others)


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
def test_a_sweep_and_runs_survive_a_jump_of_the_clock(
    home: Path,
    set_clock: Callable[[int], None],
    sweep_of: Callable[..., HyperDriveRun],
    experiment: Experiment,
    project: Callable[..., Path],
    tmp_path: Path,
    jump_s: int,
) -> None:
    gate = tmp_path / "gate"
    sweep = sweep_of(PATIENT, [str(gate)], max_total_runs=2, max_concurrent_runs=1, max_duration_minutes=60)
    config = with_this_python(project(train=PATIENT), arguments=[str(gate)])
    config.run_config.max_run_duration_seconds = 3600
    run = experiment.submit(config)
    with experiment.start_logging(snapshot_directory=None) as interactive:
        eventually(lambda: run.get_status() == "Running", "the run has started")
        eventually(lambda: any(child.get_status() == "Running" for child in sweep.get_children()), "a child runs")
        before = interactive.get_details()["startTimeUtc"]
        set_clock(jump_s)
        runs = (sweep, run, interactive)
        holds_for(3, lambda: all(each.get_status() == "Running" for each in runs), "the jump ended a run")
        stop_yard(home)  # the next yard continues with the time limit
        holds_for(3, lambda: all(each.get_status() == "Running" for each in runs), "the restart ended a run")
        gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics()["score"] == [1.0, 2.0]
    assert sweep.wait_for_completion()["status"] == "Completed"
    assert len(list(sweep.get_children())) == 2
    assert interactive.get_status() == "Completed"
    with experiment.start_logging(snapshot_directory=None) as later:
        started = later.get_details()["startTimeUtc"]
    assert (started > before) == (jump_s > 0), "the jump has not reached the yard"


def test_a_time_limit_ends_a_run_after_the_true_time(
    set_clock: Callable[[int], None], experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    """A clock that is set back must not extend the limit."""
    config = with_this_python(project(train=PATIENT), arguments=[str(tmp_path / "never")])
    config.run_config.max_run_duration_seconds = 3
    run = experiment.submit(config)
    eventually(lambda: run.get_status() == "Running", "the run has started")
    set_clock(-DAY_S)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Canceled"
    assert "max_run_duration_seconds=3" in str(details["error"])
