"""Everything that a job logs with the stock client is in the job's run or its children."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run as MlflowRun

from runyard import Experiment, PyTorchConfiguration, Run
from support import eventually, stop_yard, with_this_python

TWO_FITS = """
import mlflow
from mlflow import MlflowClient
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

mlflow.sklearn.autolog(log_models=False, log_datasets=False)
x, y = load_iris(return_X_y=True)
LogisticRegression(max_iter=200, C=0.5).fit(x, y)
LogisticRegression(max_iter=200, C=0.25).fit(x, y)
mlflow.log_metric("after", 1.0)
mlflow.end_run()
with mlflow.start_run(run_name="explicit"):
    mlflow.log_metric("loss", 0.5)
    with mlflow.start_run(run_name="nested", nested=True):
        mlflow.log_metric("loss", 0.25)
GridSearchCV(LogisticRegression(max_iter=200), {"C": [1.0, 2.0]}, cv=2).fit(x, y)
experiment_id = mlflow.get_experiment_by_name("%s").experiment_id
MlflowClient().set_terminated(MlflowClient().create_run(experiment_id, run_name="client").info.run_id)
"""


def test_everything_that_autolog_and_the_script_log_is_below_the_job(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    run = experiment.submit(with_this_python(project(train=TWO_FITS % experiment.name)))
    run.wait_for_completion()
    assert client.get_run(run.id).data.params["C"] == "0.5"  # the first fit logs to the job's own run
    children = children_of(client, run)
    by_param = {child.data.params.get("C"): child for child in children}
    assert by_param["0.25"].data.tags["mlflow.autologging"] == "sklearn"
    assert [child.data.metrics["after"] for child in children if "after" in child.data.metrics] == [1.0]
    by_name = {child.info.run_name: child for child in children}
    (nested,) = children_of(client, Run(experiment, by_name["explicit"].info.run_id))
    assert (nested.info.run_name, nested.data.metrics) == ("nested", {"loss": 0.25})
    (search,) = [child for child in children if "best_C" in child.data.params]
    assert len(children_of(client, Run(experiment, search.info.run_id))) == 2
    assert "client" in by_name
    runs = client.search_runs([experiment.name])
    assert [top.info.run_id for top in runs if "mlflow.parentRunId" not in top.data.tags] == [run.id]
    assert {logged.info.status for logged in runs} == {"FINISHED"}
    assert {child.id for child in run.get_children(recursive=True)} == {r.info.run_id for r in runs} - {run.id}


def test_every_rank_logs_below_the_job(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    script = (
        "import mlflow, os\n"
        "with mlflow.start_run():\n    mlflow.log_metric(f'rank_{os.environ[\"RANK\"]}', 1)\n"
        "with mlflow.start_run(run_name=f'second run of rank {os.environ[\"RANK\"]}'):\n    mlflow.log_metric('b', 2)\n"
    )
    config = with_this_python(project(train=script))
    config.run_config.framework = "PyTorch"
    config.run_config.communicator = "Gloo"
    config.run_config.pytorch = PyTorchConfiguration("Gloo", process_count=2)
    run = experiment.submit(config)
    run.wait_for_completion()
    assert client.get_run(run.id).data.metrics == {"rank_0": 1.0, "rank_1": 1.0}
    names = [child.info.run_name for child in children_of(client, run)]
    assert sorted(names) == ["second run of rank 0", "second run of rank 1"]


def test_the_workspace_in_a_job_keeps_the_token_of_the_job(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    script = (
        "import mlflow\nfrom runyard import Workspace\n"
        "mlflow.set_tracking_uri(Workspace().get_mlflow_tracking_uri())\n"
        "mlflow.log_metric('a', 1)\nmlflow.end_run()\nmlflow.log_metric('b', 1)"
    )
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    assert [child.data.metrics for child in children_of(client, run)] == [{"b": 1.0}]


LEAVES_A_RUN_OPEN = """
import mlflow, os, time
with mlflow.start_run():
    pass
mlflow.start_run(run_name="open")
open(os.environ["READY"], "w").write(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.parametrize(("is_canceled", "status"), [(True, "KILLED"), (False, "FAILED")])
def test_runs_that_a_job_leaves_open_end_with_the_job(
    experiment: Experiment,
    project: Callable[..., Path],
    client: MlflowClient,
    tmp_path: Path,
    is_canceled: bool,
    status: str,
) -> None:
    run, process_id = submit_and_wait(experiment, project(train=LEAVES_A_RUN_OPEN), tmp_path / "ready")
    if is_canceled:
        run.cancel()
    else:
        os.kill(process_id, signal.SIGKILL)
    run.wait_for_completion(raise_on_error=False)
    eventually(lambda: [child.info.status for child in children_of(client, run)] == [status], "the end of the child")


def test_runs_that_a_job_left_open_end_with_the_next_yard(
    experiment: Experiment,
    project: Callable[..., Path],
    client: MlflowClient,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    run, process_id = submit_and_wait(experiment, project(train=LEAVES_A_RUN_OPEN), tmp_path / "ready")
    stop_yard(home)
    os.kill(process_id, signal.SIGKILL)
    run.wait_for_completion(raise_on_error=False)
    eventually(lambda: [child.info.status for child in children_of(client, run)] == ["FAILED"], "the end of the child")


def test_a_run_that_a_left_process_opens_after_the_job_ends_with_the_next_yard(
    experiment: Experiment,
    project: Callable[..., Path],
    client: MlflowClient,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    run = experiment.submit(with_this_python(project(train="pass")))
    run.wait_for_completion()
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", f"{os.environ['MLFLOW_TRACKING_TOKEN']}.{run.id}")
    child = client.create_run(experiment.name)
    assert client.get_run(child.info.run_id).info.status == "RUNNING"
    stop_yard(home)
    experiment.workspace.get_mlflow_tracking_uri()
    eventually(lambda: [r.info.status for r in children_of(client, run)] == ["FINISHED"], "the end of the child")


def test_a_run_of_a_notebook_below_a_job_stays_open_when_the_job_ends(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    run = experiment.submit(with_this_python(project(train="pass")))
    run.wait_for_completion()
    child = client.create_run(experiment.name, tags={"mlflow.parentRunId": run.id})
    assert client.get_run(child.info.run_id).info.status == "RUNNING"
    client.set_terminated(child.info.run_id)


def submit_and_wait(experiment: Experiment, folder: Path, ready: Path) -> tuple[Run, int]:
    config = with_this_python(folder)
    config.run_config.environment.environment_variables = {"READY": str(ready)}
    run = experiment.submit(config)
    eventually(lambda: ready.exists() and ready.read_text() != "", "the open run", within_s=180)
    return run, int(ready.read_text())


def children_of(client: MlflowClient, run: Run) -> list[MlflowRun]:
    return list(client.search_runs([run.experiment.name], f"tags.mlflow.parentRunId = '{run.id}'"))
