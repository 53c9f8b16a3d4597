"""Optuna studies that run inside of a run are shown as sweeps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest

from cli_support import CommandLine
from runyard import Experiment, Run, Workspace
from runyard.errors import HyperDriveException, UserErrorException, YardUnavailable
from runyard.hyperdrive import HyperDriveRun
from runyard.integrations.optuna import RunyardStorage
from runyard.integrations.study_reports import StudyReporter, TrialState
from support import eventually

Submit = Callable[..., Run]

OBJECTIVE = """
import json, sys
from pathlib import Path
import optuna
from runyard.integrations.optuna import RunyardStorage

optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    trial.set_user_attr("note", kind + "!")
    for step in range(3):
        trial.report(x * x + (2 - step), step)
    if trial.number == 1:
        raise optuna.TrialPruned()
    if trial.number == 2:
        raise ValueError("diverged")
    return x * x
"""

STUDY = (
    OBJECTIVE
    + """
study = optuna.create_study(
    study_name="tune", storage=RunyardStorage(), direction="minimize", sampler=optuna.samplers.RandomSampler(seed=1)
)
study.optimize(objective, n_trials=6, catch=(ValueError,))
Path("outputs/trials.json").write_text(json.dumps([[t.params, t.values] for t in study.trials]))
print("best", study.best_trial.number)
"""
)


@pytest.mark.real
def test_a_study_in_a_job_is_shown_as_a_sweep(submit: Submit, workspace: Workspace, tmp_path: Path) -> None:
    run = submit(STUDY)
    run.wait_for_completion()
    sweep = HyperDriveRun(run.experiment, run.id)
    view = sweep._sweep()
    assert (view["study"], view["goal"], view["primary_metric"]) == ("tune", "minimize", "value")
    children = {child["number"]: child for child in view["children"]}
    assert [children[number]["status"] for number in range(6)] == [
        *("Completed", "Canceled", "Failed", "Completed", "Completed", "Completed"),
    ]
    assert children[1]["stopped"] == "pruned at step 2"
    best = sweep.get_best_run_by_primary_metric()
    assert best is not None
    assert best.id == f"{run.id}_{view['best']}"
    x = children[view["best"]]["parameters"]["x"]
    assert best.get_params() == {"x": str(x), "kind": children[view["best"]]["parameters"]["kind"]}
    assert best.get_metrics() == {"value": pytest.approx([x * x + 2, x * x + 1, x * x])}
    assert best.get_tags()["note"] in ("a!", "b!")
    assert Run.get(workspace, f"{run.id}_1").status == "Canceled"
    command_line = CommandLine(workspace.home, tmp_path)
    table = command_line("show", run.id).text
    assert "pruned at step 2" in table
    assert f"best {view['best']}" in command_line("logs", run.id).text


@pytest.mark.real
def test_a_running_trial_is_shown_with_its_values_and_fails_with_its_job(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        """
import time, optuna
from runyard.integrations.optuna import RunyardStorage

def objective(trial):
    trial.suggest_int("depth", 1, 9)
    trial.report(0.5, 7)
    time.sleep(600)

optuna.create_study(storage=RunyardStorage()).optimize(objective, n_trials=1)
"""
    )

    def running_trial() -> bool:
        return any(child.get_metrics() for child in run.get_children())

    eventually(running_trial, "the trial is running and has a value")
    (trial,) = run.get_children()
    assert (trial.status, trial.get_metrics()) == ("Running", {"value": 0.5})
    assert 1 <= int(trial.get_params()["depth"]) <= 9
    (child,) = HyperDriveRun(run.experiment, run.id)._sweep()["children"]
    assert (child["status"], child["best"], child["reports"]) == ("Running", None, 1)
    run.cancel()
    run.wait_for_completion()
    eventually(lambda: trial.get_status() == "Failed", "the trial ends with its job")
    assert run.id in trial.end.message


@pytest.mark.real
def test_several_processes_of_a_job_work_on_one_study(submit: Submit) -> None:
    run = submit(
        OBJECTIVE
        + """
import multiprocessing, subprocess

def shared_storage():
    # a machine that is busy keeps the database locked for longer than the default of 5 seconds
    return RunyardStorage(
        optuna.storages.RDBStorage("sqlite:///study.db", engine_kwargs={"connect_args": {"timeout": 200}})
    )

def work(storage, count):
    study = optuna.load_study(study_name="shared", storage=storage)
    study.optimize(objective, n_trials=count, catch=(ValueError,))

if __name__ == "__main__":
    if "worker" in sys.argv:
        work(shared_storage(), 3)
    else:
        storage = shared_storage()
        study = optuna.create_study(study_name="shared", storage=storage)
        study.optimize(objective, n_trials=1)
        forked = multiprocessing.get_context("fork").Process(target=work, args=(storage, 3))
        spawned = multiprocessing.get_context("spawn").Process(target=work, args=(storage, 3))
        separate = subprocess.Popen([sys.executable, __file__, "worker"])
        for process in (forked, spawned):
            process.start()
        for process in (forked, spawned):
            process.join()
            assert process.exitcode == 0
        assert separate.wait() == 0
"""
    )
    run.wait_for_completion()
    children = HyperDriveRun(run.experiment, run.id)._sweep()["children"]
    assert [child["number"] for child in children] == list(range(10))
    assert sorted(child["status"] for child in children) == ["Canceled", *["Completed"] * 8, "Failed"]
    assert len(list(run.get_children(recursive=True))) == 10


@pytest.mark.real
def test_a_study_that_another_run_continues_is_not_recorded_twice(
    experiment: Experiment, submit: Submit, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    plain = optuna.create_study(study_name="long", storage=url, direction="maximize")
    plain.optimize(lambda trial: trial.suggest_float("x", 0, 1) - 10, n_trials=2)
    script = (
        OBJECTIVE
        + f"""
study = optuna.load_study(study_name="long", storage=RunyardStorage({url!r}))
study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + len(study.trials), n_trials=2)
"""
    )
    first, second = submit(script), None
    first.wait_for_completion()
    second = submit(script)
    second.wait_for_completion()
    sweeps = [HyperDriveRun(experiment, run.id) for run in (first, second)]
    views = [sweep._sweep() for sweep in sweeps]
    assert [[child["number"] for child in view["children"]] for view in views] == [[0, 1, 2, 3], [4, 5]]
    assert [view["resume_from"] for view in views] == [[second.id], [first.id]]
    assert {sweep.get_best_run_by_primary_metric().id for sweep in sweeps} == {f"{second.id}_5"}
    earlier = Run.get(experiment.workspace, f"{first.id}_0")
    assert earlier._view["started_at"] == pytest.approx(plain.trials[0].datetime_start.timestamp())
    assert earlier._view["ended_at"] == pytest.approx(plain.trials[0].datetime_complete.timestamp())
    assert earlier.get_metrics() == {"value": plain.trials[0].value}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_study_outside_of_a_job_opens_an_interactive_run(workspace: Workspace) -> None:
    storage = RunyardStorage(experiment="studies")
    assert storage.run is None
    study = optuna.create_study(storage=storage, directions=["minimize", "maximize"])
    study.set_metric_names(["loss", "speed"])
    study.enqueue_trial({"x": 3.0})
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 9), 7.5), n_trials=2)
    run = storage.run
    assert run is not None
    assert run.experiment.name == "studies"
    first = Run.get(workspace, f"{run.id}_0")
    eventually(lambda: first.get_status() == "Completed", "the trial is completed")
    assert first.get_metrics() == {"loss": 3.0, "speed": 7.5}
    view = HyperDriveRun(run.experiment, run.id)._sweep()
    assert (view["primary_metric"], view["goal"]) == ("loss", "minimize")
    run.complete()
    eventually(lambda: run.get_status() == "Completed", "the run is completed")


def test_every_further_study_of_a_run_is_a_child_of_it(workspace: Workspace) -> None:
    storage = RunyardStorage()
    for name in ("one", "two"):
        study = optuna.create_study(study_name=name, storage=storage)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    run = storage.run
    assert run is not None
    children = {child.name: child for child in run.get_children()}
    assert sorted(children) == ["one>trial 0", "one>trial 1", "one>two"]
    second = children["one>two"]
    assert len(HyperDriveRun(run.experiment, second.id)._sweep()["children"]) == 2
    run.complete()
    eventually(lambda: second.get_status() == "Completed", "the second study ends with the run")


def test_trials_that_are_added_or_enqueued_are_recorded_once_they_run(workspace: Workspace) -> None:
    storage = RunyardStorage()
    study = optuna.create_study(storage=storage)
    study.enqueue_trial({"x": 0.5})
    assert storage.run is not None
    assert list(storage.run.get_children()) == []
    study.add_trial(
        optuna.trial.create_trial(
            value=4.0, params={"x": 1.0}, distributions={"x": optuna.distributions.FloatDistribution(0, 9)}
        )
    )
    trial = study.ask()
    trial.report(float("nan"), 1)
    study.tell(trial, float("inf"))
    view = HyperDriveRun(storage.run.experiment, storage.run.id)._sweep()
    assert [(child["best"], child["status"]) for child in view["children"]][1] == (4.0, "Completed")
    assert view["best"] == 1  # a value that is not finite is never the best
    storage.run.complete()


def test_a_study_continues_while_the_yard_does_not_respond() -> None:
    is_up = threading.Event()
    sent: list[dict[str, Any]] = []

    def send(study_id: int, trials: list[dict[str, Any]]) -> None:
        if not is_up.is_set():
            raise YardUnavailable("no response")
        sent.extend(trials)

    reporter = StudyReporter(send)
    for number in range(3):
        reporter.report(1, TrialState(number))
        reporter.report(1, TrialState(number, "complete", values=[1.0]))
    assert sent == []
    is_up.set()
    eventually(lambda: len(sent) == 3, "all trials are reported")
    assert [(trial["number"], trial["state"]) for trial in sent] == [(0, "complete"), (1, "complete"), (2, "complete")]


def test_equal_reports_of_several_clients_are_recorded_once(experiment: Experiment) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        connection = experiment.workspace.connection
        body = {
            "key": "0" * 32,
            "name": "raced",
            "metrics": ["loss"],
            "directions": ["minimize"],
            "trials": [
                {"number": number, "state": "complete", "values": [1.5], "steps": [0, 1], "intermediate": [3.0, 2.0]}
                for number in range(3)
            ],
        }
        threads = [
            threading.Thread(target=connection.post, args=(f"/api/sweeps/{run.id}/study", body)) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        children = list(run.get_children())
        assert len(children) == 3
        assert [child.get_metrics() for child in children] == [{"loss": [3.0, 2.0, 1.5]}] * 3


def test_a_trial_that_is_reported_after_the_end_of_its_run_has_failed(experiment: Experiment) -> None:
    body = {"key": "1" * 32, "name": "late", "metrics": ["loss"], "directions": ["minimize"]}
    with experiment.start_logging(snapshot_directory=None) as run:
        pass
    eventually(lambda: run.get_status() == "Completed", "the run is completed")
    trials = [{"number": 0, "state": "running"}, {"number": 1, "state": "complete", "values": [1.0]}]
    experiment.workspace.connection.post(f"/api/sweeps/{run.id}/study", {**body, "trials": trials})
    second, first = run.get_children()
    eventually(lambda: first.get_status() == "Failed", "the open trial ends")
    assert second.get_status() == "Completed"


@pytest.mark.parametrize(
    "change",
    [
        {"key": "../x"},
        {"name": ""},
        {"metrics": []},
        {"metrics": ["loss", "loss"], "directions": ["minimize", "minimize"]},
        {"directions": ["down"]},
        {"trials": [{"number": -1, "state": "running"}]},
        {"trials": [{"number": 0, "state": "lost"}]},
        {"trials": [{"number": 0, "state": "complete", "values": []}]},
        {"trials": [{"number": 0, "state": "running", "steps": [1], "intermediate": []}]},
        {"trials": [{"number": 0, "state": "running", "steps": [2**63], "intermediate": [1.0]}]},
        {"trials": [{"number": 0, "state": "running", "started_at": -1.0}]},
        {"trials": [{"number": 0, "state": "running", "parameters": {"x": "\ud800"}}]},
        {"trials": [{"number": 0, "state": "running", "attributes": {"\ud800": "x"}}]},
        {"trials": [{"number": 0, "state": "failed", "message": "\ud800"}]},
    ],
)
def test_invalid_reports_are_refused(experiment: Experiment, change: dict[str, Any]) -> None:
    body = {"key": "0" * 32, "name": "tune", "metrics": ["loss"], "directions": ["minimize"], "trials": [], **change}
    with experiment.start_logging(snapshot_directory=None) as run:
        with pytest.raises(UserErrorException):
            experiment.workspace.connection.post(f"/api/sweeps/{run.id}/study", body)
        with pytest.raises(HyperDriveException):
            HyperDriveRun(experiment, run.id)
        assert list(run.get_children()) == []
