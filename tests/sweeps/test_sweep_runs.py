"""Sweeps of real processes, through the SDK."""

from __future__ import annotations

import signal
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Run, Workspace
from runyard.errors import ActivityFailedException, RunyardException
from runyard.hyperdrive import (
    BanditPolicy,
    BayesianParameterSampling,
    GridParameterSampling,
    HyperDriveConfigException,
    HyperDriveException,
    HyperDriveRun,
    PrimaryMetricGoal,
    RandomParameterSampling,
    SobolParameterSampling,
    choice,
    uniform,
)
from runyard.sdk.training.distributed import PyTorchConfiguration
from support import eventually, stop_yard, with_this_python

pytestmark = pytest.mark.real

Start = Callable[..., HyperDriveRun]
WAITS = """\
import argparse, pathlib, time
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
run = Run.get_context()
for report in range(600):
    run.log("score", x)
    time.sleep(0.05)
"""


def test_the_best_child_has_the_best_value_logged_at_any_time(sweep_of: Start) -> None:
    """B13.90, B13.91."""
    grid = GridParameterSampling({"--x": choice(1, 3, 2)})
    sweep = sweep_of(hyperparameter_sampling=grid, max_total_runs=10)
    details = sweep.wait_for_completion()
    assert details["status"] == "Completed"
    best = sweep.get_best_run_by_primary_metric()
    assert best is not None
    assert best.get_metrics()["score"] == [3.0, 6.0, 9.0, 12.0]
    ranked = sweep.get_children_sorted_by_primary_metric()
    assert [child["best_primary_metric"] for child in ranked] == [12.0, 8.0, 4.0]
    assert [child["hyperparameters"] for child in ranked] == [{"--x": 3}, {"--x": 2}, {"--x": 1}]
    assert [c["run_id"] for c in sweep.get_children_sorted_by_primary_metric(top=1)] == [best.id]
    assert sweep.get_hyperparameters()[best.id] == {"--x": 3}
    assert set(sweep.get_metrics()) == {child.id for child in sweep.get_children()}
    assert best.parent == sweep


def test_a_grid_is_complete_and_each_point_is_tried_once(sweep_of: Start) -> None:
    space = {"--x": choice(1, 2, 3), "verbose-level": choice("a b", "c'd\"")}
    script = "import sys\nfrom runyard import Run\nRun.get_context().log('score', 1.0)\nprint(sys.argv[1:])\n"
    sweep = sweep_of(script, hyperparameter_sampling=GridParameterSampling(space), max_total_runs=50)
    sweep.wait_for_completion()
    tried = [tuple(values.values()) for values in sweep.get_hyperparameters().values()]
    assert sorted(tried) == sorted((x, text) for x in (1, 2, 3) for text in ("a b", "c'd\""))


def test_a_child_gets_the_arguments_of_the_estimator_and_each_drawn_value_as_text(sweep_of: Start) -> None:
    """B13.85, B13.86: a flag without a value is not mistaken for a replaced argument."""
    script = (
        "import json, sys\nfrom runyard import Run\nRun.get_context().log('score', 1)\nprint(json.dumps(sys.argv[1:]))"
    )
    sweep = sweep_of(
        script,
        arguments=["--verbose", "--learning_rate", "5", "--units", "3"],
        hyperparameter_sampling=RandomParameterSampling({"learning_rate": choice(0.25)}),
        max_total_runs=1,
    )
    sweep.wait_for_completion()
    (child,) = sweep.get_children()
    logs = child.get_details_with_logs()["logFiles"]
    driver_log = next(text for name, text in logs.items() if "70_driver_log" in name)
    assert driver_log.strip() == '["--verbose", "--units", "3", "--learning_rate", "0.25"]'


def test_a_policy_cancels_children_early_and_prints_the_reason(sweep_of: Start, capsys: Any) -> None:
    """B13.89, B13.93."""
    script = WAITS.replace("600", "30 if x > 1 else 600")
    sweep = sweep_of(
        script,
        hyperparameter_sampling=GridParameterSampling({"--x": choice(10, 1)}),
        policy=BanditPolicy(slack_factor=0.2, evaluation_interval=2),
    )
    assert sweep.wait_for_completion(show_output=True)["status"] == "Completed"
    children = {child["hyperparameters"]["--x"]: child for child in sweep.get_children_sorted_by_primary_metric()}
    assert children[10]["status"] == "Completed"
    assert children[1]["status"] == "Canceled"
    stopped = Run(sweep.experiment, children[1]["run_id"])
    assert "stopped early by Bandit" in stopped.end.message
    assert stopped.end.processes_left == 0
    assert "stopped early by Bandit at report" in capsys.readouterr().out


def test_a_sweep_continues_after_the_yard_is_killed(home: Path, sweep_of: Start) -> None:
    script = WAITS.replace("600", "8")
    sweep = sweep_of(script, max_total_runs=6)
    for ended in (1, 3):
        eventually(lambda n=ended: _ended(sweep) >= n, f"{ended} children have ended", 60)
        stop_yard(home, signal.SIGKILL)
    sweep.wait_for_completion()
    children = list(sweep.get_children())
    assert sorted(child.id for child in children) == [f"{sweep.id}_{number}" for number in range(6)]
    assert all(child.get_status() == "Completed" for child in children)
    assert all(len(child.get_metrics()["score"]) == 8 for child in children)


def test_cancel_ends_the_sweep_and_all_its_children(sweep_of: Start) -> None:
    sweep = sweep_of(WAITS)
    eventually(lambda: len(_running(sweep)) == 2, "two children run", 60)
    sweep.cancel()
    assert sweep.wait_for_completion()["status"] == "Canceled"
    assert {child.get_status() for child in sweep.get_children()} == {"Canceled"}


def test_too_many_failures_in_a_row_end_the_sweep_with_the_childs_error(sweep_of: Start) -> None:
    sweep = sweep_of("raise ValueError('no such data')", max_total_runs=50, max_failures_in_a_row=3)
    with pytest.raises(ActivityFailedException, match=r"3 children in a row failed.*no such data"):
        sweep.wait_for_completion()
    assert len(list(sweep.get_children())) < 10


def test_a_sweep_fails_with_a_reason_if_all_children_failed(sweep_of: Start) -> None:
    sweep = sweep_of("raise ValueError('no such data')", max_total_runs=2)
    with pytest.raises(ActivityFailedException, match=r"2 of 2 children failed.*no such data"):
        sweep.wait_for_completion()
    assert {child["error"] for child in sweep._sweep()["children"]} == {"ValueError: no such data"}


def test_running_children_have_a_value_without_a_policy(sweep_of: Start) -> None:
    sweep = sweep_of(WAITS, max_total_runs=2)
    eventually(
        lambda: [child["best"] is not None for child in sweep._sweep()["children"]] == [True, True],
        "both have a value",
        60,
    )
    assert len(_running(sweep)) == 2
    sweep.cancel()
    sweep.wait_for_completion()


def test_a_child_has_its_start_time(sweep_of: Start) -> None:
    sweep = sweep_of(max_total_runs=2)
    sweep.wait_for_completion()
    began_at = {child["run_id"]: child["began_at"] for child in sweep._sweep()["children"]}
    assert began_at == {
        child.id: child._connection.get(f"/api/runs/{child.id}")["started_at"] for child in sweep.get_children()
    }
    assert all(began_at.values())


def test_a_missing_metric_warns_after_the_first_child(sweep_of: Start) -> None:
    script = "from runyard import Run\nRun.get_context().log('loss', 1.0)\n"
    sweep = sweep_of(script, max_total_runs=2, max_concurrent_runs=1)
    sweep.wait_for_completion()
    log = sweep.get_details_with_logs()["logFiles"]["azureml-logs/hyperdrive.txt"].splitlines()
    warning_line = next(index for index, line in enumerate(log) if "'score'" in line and "warning" in line)
    assert "'loss'" in log[warning_line]
    assert warning_line < next(index for index, line in enumerate(log) if "child 1 (" in line)
    assert any("'score'" in warning["message"] for warning in sweep.get_details()["warnings"])
    assert sweep.get_best_run_by_primary_metric() is None
    assert len(sweep.get_children_sorted_by_primary_metric(discard_no_metric=True)) == 0


def test_only_failed_children_are_rerun(sweep_of: Start, tmp_path: Path) -> None:
    mark = tmp_path / "may-work"
    script = (
        "import sys, pathlib\nfrom runyard import Run\n"
        f"if sys.argv[2] in '24' and not pathlib.Path({str(mark)!r}).exists(): raise SystemExit(3)\n"
        "Run.get_context().log('score', float(sys.argv[2]))\n"
    )
    grid = GridParameterSampling({"--x": choice(1, 2, 3, 4)})
    sweep = sweep_of(script, hyperparameter_sampling=grid)
    sweep.wait_for_completion()
    mark.touch()
    again = sweep.rerun_failed()
    again.wait_for_completion()
    assert sorted(values["--x"] for values in again.get_hyperparameters().values()) == [2, 4]
    with pytest.raises(HyperDriveException, match="nothing to run again"):
        again.rerun_failed()


def test_a_resumed_child_has_its_old_values_and_outputs(sweep_of: Start) -> None:
    """B13.92."""
    script = (
        "import argparse, os, pathlib\nfrom runyard import Run\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--x', type=int)\nparser.add_argument('--resume-from')\n"
        "a = parser.parse_args()\nos.makedirs('outputs', exist_ok=True)\n"
        "before = int(pathlib.Path(a.resume_from, 'epoch').read_text()) if a.resume_from else 0\n"
        "pathlib.Path('outputs/epoch').write_text(str(before + 1))\n"
        "Run.get_context().log('score', a.x + before)\n"
    )
    grid = GridParameterSampling({"--x": choice(1, 2)})
    first = sweep_of(script, hyperparameter_sampling=grid, max_total_runs=2)
    first.wait_for_completion()
    best = first.get_best_run_by_primary_metric()
    second = sweep_of(script, max_total_runs=1, resume_from=[first], resume_child_runs=[best])
    second.wait_for_completion()
    (child,) = second.get_children()
    assert second.get_hyperparameters()[child.id] == {"--x": 2}
    assert child.get_metrics()["score"] == 3
    assert second.get_best_run_by_primary_metric() == child
    with pytest.raises(HyperDriveConfigException, match="to minimize"):
        sweep_of(script, resume_from=[first], primary_metric_goal=PrimaryMetricGoal.MINIMIZE)


@pytest.mark.parametrize("sampling", [SobolParameterSampling, RandomParameterSampling])
def test_a_seed_makes_a_sweep_repeatable(sweep_of: Start, sampling: Any) -> None:
    values = []
    for _ in range(2):
        sweep = sweep_of(hyperparameter_sampling=sampling({"--x": uniform(0, 1)}, seed=7))
        sweep.wait_for_completion()
        values.append([child["--x"] for child in sweep.get_hyperparameters().values()])
    assert values[0] == values[1]


@pytest.mark.filterwarnings("ignore:Bayesian sampling")
def test_a_bayesian_sweep_ranks_parameters_by_importance(sweep_of: Start) -> None:
    script = (
        "import sys\nfrom runyard import Run\n"
        "values = dict(zip(sys.argv[1::2], map(float, sys.argv[2::2])))\n"
        "Run.get_context().log('score', 10 * values['--x'] + 0.01 * values['--y'])\n"
    )
    space = {"--x": uniform(0, 1), "--y": uniform(0, 1)}
    sweep = sweep_of(script, hyperparameter_sampling=BayesianParameterSampling(space, seed=2), max_total_runs=14)
    sweep.wait_for_completion()
    importance = sweep.get_parameter_importance()
    assert list(importance) == ["--x", "--y"]


def test_all_processes_of_a_distributed_child_are_stopped(sweep_of: Start, project: Callable[..., Path]) -> None:
    script = (
        "import os, sys, time\nfrom runyard import Run\nrun = Run.get_context()\n"
        "x = float(sys.argv[2])\n"
        "for report in range(20 if x > 1 else 2000):\n"
        "    if os.environ['RANK'] == '0': run.log('score', x)\n"
        "    time.sleep(0.05)\n"
    )
    config = with_this_python(project(train=script), "train.py")
    config.run_config.framework, config.run_config.communicator = "PyTorch", "Gloo"
    config.run_config.pytorch = PyTorchConfiguration("Gloo", 2)
    sweep = sweep_of(
        script,
        run_config=config,
        hyperparameter_sampling=GridParameterSampling({"--x": choice(10, 1)}),
        max_concurrent_runs=1,  # the good child first: a poor one that has completed cannot be stopped
        policy=BanditPolicy(slack_factor=0.2, evaluation_interval=2),
    )
    sweep.wait_for_completion()
    ends = {child["hyperparameters"]["--x"]: child for child in sweep.get_children_sorted_by_primary_metric()}
    assert (ends[10]["status"], ends[1]["status"]) == ("Completed", "Canceled")
    assert Run(sweep.experiment, ends[1]["run_id"]).end.processes_left == 0


def test_two_hundred_children_are_each_a_run_with_its_own_metrics(sweep_of: Start) -> None:
    sweep = sweep_of(
        "import sys\nfrom runyard import Run\nRun.get_context().log('score', float(sys.argv[2]))\n",
        hyperparameter_sampling=GridParameterSampling({"--x": choice(range(200))}),
        max_total_runs=200,
        max_concurrent_runs=8,
    )
    sweep.wait_for_completion()
    metrics = sweep.get_metrics()
    assert len(metrics) == 200
    values = sweep.get_hyperparameters()
    assert all(metrics[run_id]["score"] == values[run_id]["--x"] for run_id in metrics)


def test_a_missing_python_fails_the_child_and_not_the_sweep(
    sweep_of: Start, project: Callable[..., Path], tmp_path: Path
) -> None:
    environment, moved = tmp_path / "environment", tmp_path / "moved"
    venv.create(environment, symlinks=True)
    script = (
        "import os, sys\nfrom runyard import Run\nx = int(sys.argv[2])\nRun.get_context().log('score', x)\n"
        f"if x == 1: os.rename({str(environment)!r}, {str(moved)!r})\n"
    )
    config = with_this_python(project(train=script))
    config.run_config.environment.python.interpreter_path = str(environment / "bin" / "python")
    grid = GridParameterSampling({"--x": choice(1, 2, 3)})
    sweep = sweep_of(script, run_config=config, hyperparameter_sampling=grid, max_total_runs=3, max_concurrent_runs=1)
    sweep.wait_for_completion(raise_on_error=False)
    children = sorted(sweep._sweep()["children"], key=lambda child: child["number"])
    assert [child["status"] for child in children] == ["Completed", "Failed", "Failed"]
    assert all("no Python interpreter at" in child["error"] for child in children[1:])
    assert sweep.get_status() == "Completed"


def test_an_invalid_child_is_rejected_before_the_sweep_is_created(
    sweep_of: Start, experiment: Experiment, project: Callable[..., Path], workspace: Workspace
) -> None:
    missing = workspace.get_default_datastore().path("never/uploaded").as_mount()
    without_python = with_this_python(project(train="print(1)"))
    without_python.run_config.environment.python.interpreter_path = "/nowhere/python"
    for config, message in (
        (with_this_python(project(train="print(1)"), arguments=[missing]), "no files at 'never/uploaded'"),
        (without_python, "no Python interpreter at '/nowhere/python'"),
    ):
        with pytest.raises(RunyardException, match=message):
            sweep_of(run_config=config)
    assert list(experiment.get_runs()) == []


def test_a_listed_sweep_is_a_hyperdrive_run(sweep_of: Start, workspace: Workspace) -> None:
    sweep = sweep_of(max_total_runs=1)
    sweep.wait_for_completion()
    (listed,) = Experiment(workspace, sweep.experiment.name).get_runs()
    assert isinstance(listed, HyperDriveRun)
    assert listed.get_best_run_by_primary_metric() is not None
    with pytest.raises(HyperDriveException, match="is not a sweep"):
        HyperDriveRun(sweep.experiment, next(iter(sweep.get_children())).id)


def _ended(sweep: HyperDriveRun) -> int:
    return sum(child.status in ("Completed", "Failed", "Canceled") for child in sweep.get_children())


def _running(sweep: HyperDriveRun) -> list[Run]:
    return [child for child in sweep.get_children() if child.status == "Running"]
