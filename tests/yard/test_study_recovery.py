"""An Optuna study whose yard is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from runyard import Experiment, Run, ScriptRunConfig
from runyard.hyperdrive import HyperDriveRun
from support import eventually, stop_yard

pytestmark = pytest.mark.real

SCRIPT = """
import os, sys, time
import optuna
from runyard.integrations.optuna import RunyardStorage

def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    trial.report(x + 1, 0)
    while trial.number in (1, 3) and not os.path.exists(f"{sys.argv[1]}-{trial.number}"):
        time.sleep(0.01)
    if trial.number == 3:
        os._exit(3)
    return x

optuna.create_study(storage=RunyardStorage()).optimize(objective, n_trials=4)
"""


def test_trials_are_recorded_by_the_next_yard_and_end_with_their_run(home: Path, project, tmp_path: Path) -> None:
    config = ScriptRunConfig(str(project(train=SCRIPT)), script="train.py", arguments=[str(tmp_path / "go")])
    config.run_config.environment.python.user_managed_dependencies = True
    run = Experiment("studies").submit(config)
    eventually(lambda: _with_values(run) == 2, "the second trial runs")
    stop_yard(home, signal.SIGKILL)
    (tmp_path / "go-1").touch()
    eventually(lambda: _with_values(run) == 4, "the last trial runs")
    (tmp_path / "go-3").touch()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"

    def statuses() -> list[str]:
        return [child["status"] for child in HyperDriveRun(run.experiment, run.id)._sweep()["children"]]

    eventually(lambda: statuses() == ["Completed", "Completed", "Completed", "Failed"], "the last trial ends")
    children = HyperDriveRun(run.experiment, run.id)._sweep()["children"]
    assert [child["reports"] for child in children] == [2, 2, 2, 1]
    assert run.id in children[3]["error"]


def _with_values(run: Run) -> int:
    return sum(1 for child in run.get_children() if child.get_metrics())
