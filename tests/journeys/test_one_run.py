"""One training job, end to end, through the public names only."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from runyard import Experiment, Run, ScriptRunConfig, Workspace
from runyard.errors import (
    ActivityFailedException,
    ComputeTargetException,
    RunNotFound,
    RunyardException,
    UserErrorException,
)
from support import eventually, with_this_python

TRAIN = """
import argparse, os, sys
from runyard import Run
import helper

parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float)
parser.add_argument('--verbose', action='store_true')
args = parser.parse_args()
run = Run.get_context()
print('lr', args.lr, 'verbose', args.verbose, helper.WORD)
for step in range(3):
    run.log('loss', 1 / (step + 1))
run.log('lr', args.lr)
run.log_row('confusion', angle=1, cos=0.5)
run.log_list('list', [1, 2, 3])
open('outputs/model.pt', 'w').write('weights')
open('logs/events.txt', 'w').write('events')
open('scratch.txt', 'w').write('lost')
print('to stderr', file=sys.stderr)
"""


def here(project: Path, script: str = "train.py", arguments: list[object] | None = None) -> ScriptRunConfig:
    config = ScriptRunConfig(project, script=script, arguments=arguments or [])
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def test_a_run_goes_from_submit_to_metrics_and_files(
    experiment: Experiment, project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    """B8.48, B8.49, B8.50, B8.52, B9.59, B10.60, B10.66, B10.67, B11.68, B11.69, B11.70: the whole way, once."""
    folder = project(train=TRAIN, helper="WORD = 'sibling'")
    run = experiment.submit(here(folder, arguments=["--lr", 0.1, "--verbose"]), tags={"who": 7})
    assert re.fullmatch(r"digits-\d+_\d+_[0-9a-f]{8}", run.id)
    details = run.wait_for_completion(show_output=True)
    output = capsys.readouterr().out
    assert f"RunId: {run.id}" in output
    assert "Streaming azureml-logs/70_driver_log.txt\n" + "=" * 40 in output
    assert "lr 0.1 verbose True sibling\nto stderr\n" in output
    assert "Execution Summary\n=================\n" in output
    assert details["status"] == "Completed" == run.get_status()
    assert details["runDefinition"]["arguments"] == ["--lr", "0.1", "--verbose"]
    assert run.get_metrics() == {
        "loss": [1.0, 0.5, 1 / 3],
        "lr": 0.1,
        "confusion": {"angle": 1, "cos": 0.5},
        "list": [1, 2, 3],
    }
    assert run.get_metrics(name="lr") == {"lr": 0.1}
    names = run.get_file_names()
    assert {"outputs/model.pt", "logs/events.txt", "azureml-logs/70_driver_log.txt"} <= set(names)
    assert not any("scratch" in name for name in names)
    monkeypatch.chdir(tmp_path)
    run.download_file("outputs/model.pt")
    assert (tmp_path / "model.pt").read_text() == "weights"
    run.download_files(prefix="outputs", output_directory="got", append_prefix=False)
    assert (tmp_path / "got" / "model.pt").read_text() == "weights"
    assert run.get_tags() == {"who": "7"}
    assert (
        str(run) == f"Run(Experiment: {experiment.name},\nId: {run.id},\nType: azureml.scriptrun,\nStatus: Completed)"
    )


def test_a_failed_script_reports_its_own_error(experiment: Experiment, project) -> None:
    """B8.52, B8.55, B11.68: outputs of a failed run are stored, too."""
    script = "open('outputs/half.txt', 'w').write('x')\nprint('before')\ndef f(): raise ValueError('bad lr')\nf()\n"
    run = experiment.submit(here(project(train=script)))
    with pytest.raises(ActivityFailedException, match="ValueError: bad lr") as caught:
        run.wait_for_completion()
    error = caught.value.error_details["error"]
    assert error["reason"] == "script failed"
    assert error["traceback"].startswith("Traceback (most recent call last):")
    assert error["traceback"].rstrip().endswith("ValueError: bad lr")
    assert error["details"]["exit_code"] == 1
    assert "outputs/half.txt" in run.get_file_names()


def test_cancel_stops_the_script_and_does_not_raise(experiment: Experiment, project) -> None:
    """B8.52, B8.54."""
    run = experiment.submit(here(project(train="import time\nprint('on', flush=True)\ntime.sleep(600)")))
    eventually(lambda: run.get_status() == "Running", "the run runs")
    run.cancel()
    details = run.wait_for_completion()
    assert details["status"] == "Canceled"
    assert details["error"]["error"]["details"]["processes_left"] == 0


def test_a_run_that_exceeds_its_time_limit_is_stopped(experiment: Experiment, project) -> None:
    """B6.37."""
    config = here(project(train="import time\ntime.sleep(600)"))
    config.run_config.max_run_duration_seconds = 1
    run = experiment.submit(config)
    details = run.wait_for_completion()
    assert details["status"] == "Canceled"
    assert details["error"]["error"]["reason"] == "timed out"
    assert "max_run_duration_seconds=1" in details["error"]["message"]


def test_a_waiting_run_runs_the_code_that_it_was_submitted_with(
    experiment: Experiment, project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    blocker = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    folder = project(block=blocker, train="print('first version')")
    cores = experiment.workspace.connection.get("/api/computes/local")["status"]["cpus"]
    holding = [experiment.submit(here(folder, "block.py")) for _ in range(cores)]
    for run in holding:
        eventually(lambda run=run: run.get_status() == "Running", "every core is taken")
    waiting = experiment.submit(here(folder))
    (folder / "train.py").write_text("print('second version')")
    eventually(lambda: waiting.get_status() == "Queued", "the queue is full")
    assert "waiting for 1 CPU" in waiting.activity
    gate.touch()
    waiting.wait_for_completion()
    assert "first version" in waiting.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    for run in holding:
        run.wait_for_completion()


def test_the_snapshot_is_downloaded_as_a_zip(experiment: Experiment, project, tmp_path: Path) -> None:
    """B11.75."""
    folder = project(train="print(1)", other="x = 2")
    run = experiment.submit(here(folder))
    run.wait_for_completion()
    (folder / "train.py").write_text("print('changed')")
    path = run.restore_snapshot(path=str(tmp_path / "new" / "folder"))
    assert Path(path).is_absolute()
    assert Path(path).name == f"{run.get_properties()['ContentSnapshotId']}.zip"
    with zipfile.ZipFile(path) as archive:
        assert archive.read("train.py") == b"print(1)"
        assert sorted(archive.namelist()) == ["other.py", "train.py"]


def test_tags_change_and_properties_do_not(experiment: Experiment) -> None:
    """B12.79."""
    with experiment.start_logging(snapshot_directory=None) as run:
        run.tag("x")
        run.tag("n", 3)
        assert run.get_tags() == {"x": None, "n": "3"}
        run.tag("n", 4)
        run.remove_tags(["x"])
        assert run.get_tags() == {"n": "4"}
        run.add_properties({"p": "1"})
        run.add_properties({"p": "1"})
        with pytest.raises(UserErrorException, match="cannot be set to"):
            run.add_properties({"p": "2", "q": "new"})
        assert run.get_properties() == {"p": "1"}


def test_an_interactive_run_logs_stores_outputs_and_completes(
    experiment: Experiment, tmp_path: Path, monkeypatch
) -> None:
    """B8.49, B8.50, B10.65, B11.72."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebook.py").write_text("x = 1")
    run = experiment.start_logging()
    assert (tmp_path / "outputs").is_dir()
    assert run.get_status() == "Running"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", run.id)
    (tmp_path / "outputs" / "model.pkl").write_text("m")
    run.log("mse", 0.5)
    assert run.get_metrics() == {"mse": 0.5}
    run.complete()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_file_names() == ["outputs/model.pkl"]
    run.log("mse", 0.25)
    assert run.get_metrics() == {"mse": [0.5, 0.25]}
    assert "Type: None," in str(run)


def test_an_exception_in_the_with_block_fails_the_run_and_propagates(experiment: Experiment) -> None:
    """B11.73."""
    with pytest.raises(ZeroDivisionError), experiment.start_logging(snapshot_directory=None) as run:
        1 / 0  # noqa: B018
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert "ZeroDivisionError" in details["error"]["message"]


def test_children_belong_to_their_parent(experiment: Experiment) -> None:
    """B12.81, B10.66."""
    with experiment.start_logging(snapshot_directory=None, display_name="top") as parent:
        children = parent.create_children(count=3)
        named = parent.child_run("fold")
        assert named.name == "top>fold"
        assert named.parent == parent
        for number, child in enumerate([*children, named]):
            child.log("fold", number)
            child.complete()
        assert {child.id for child in parent.get_children()} == {c.id for c in children} | {named.id}
        metrics = parent.get_metrics(recursive=True)
        assert metrics[named.id] == {"fold": 3}
    assert [run.id for run in experiment.get_runs()] == [parent.id]
    assert len(list(experiment.get_runs(include_children=True))) == 5
    with pytest.raises(UserErrorException):
        parent.create_children(count=2, tag_key="a", tag_values=[1])
    with pytest.raises(UserErrorException):
        parent.create_children(count=101)


def test_runs_are_found_by_tag_and_property_newest_first(experiment: Experiment) -> None:
    """B12.80."""
    ids = []
    for number in range(3):
        with experiment.start_logging(snapshot_directory=None) as run:
            run.set_tags({"number": number, "all": None})
            run.add_properties({"parity": number % 2})
            ids.append(run.id)
    assert [run.id for run in experiment.get_runs(tags="all")] == ids[::-1]
    assert [run.id for run in experiment.get_runs(tags={"number": 1})] == [ids[1]]
    assert [run.id for run in experiment.get_runs(properties={"parity": "0"})] == [ids[2], ids[0]]
    assert list(experiment.get_runs(tags="none")) == []


def test_a_run_is_opened_again_by_its_id(experiment: Experiment) -> None:
    """B12.82."""
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log("a", 1)
    assert Run(experiment, run.id).get_metrics() == {"a": 1}
    with pytest.raises(RunNotFound, match="no run 'digits_1_nothing'"):
        Run(experiment, "digits_1_nothing")


def test_an_invalid_submission_starts_nothing(workspace: Workspace, experiment: Experiment, project) -> None:
    """B8.48."""
    folder = project(train="print(1)")
    with pytest.raises(RunyardException, match="a dict cannot be submitted"):
        experiment.submit({"script": "train.py"})
    config = here(folder)
    config.run_config.target = "gpu-cluster"
    with pytest.raises(ComputeTargetException, match="no compute target named 'gpu-cluster'"):
        experiment.submit(config)
    with pytest.raises(RunyardException, match=r"missing\.py"):
        experiment.submit(here(folder, "missing.py"))
    assert list(experiment.get_runs()) == []


@pytest.mark.parametrize("name", ["", "has space", "dot.ted", "-first", "x" * 256, None, 7])
def test_an_invalid_experiment_name_is_refused(workspace: Workspace, name: object) -> None:
    """B14.103."""
    with pytest.raises(UserErrorException, match="cannot be the name of an experiment"):
        Experiment(workspace, name)  # type: ignore[arg-type]


def test_outside_of_a_run_the_context_is_offline(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """B9.57."""
    monkeypatch.delenv("RUNYARD_RUN_ID", raising=False)
    run = Run.get_context()
    assert run.id.startswith("OfflineRun_")
    run.log("loss", 0.5)
    assert "Attempted to log scalar metric loss:\n0.5" in capsys.readouterr().out
    assert not hasattr(run, "get_metrics")
    with pytest.raises(RunyardException):
        Run.get_context(allow_offline=False)


def test_partial_files_of_a_killed_yard_are_deleted_when_the_run_ends(experiment, project, home) -> None:
    run = experiment.submit(with_this_python(project(train="open('../stop.json.1.draft', 'w').close()")))
    run.wait_for_completion()
    eventually(lambda: not list((home / "runs" / run.id).glob("*.draft")), "the partial file to be deleted")
