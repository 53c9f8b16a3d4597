"""Scripts that log with MLflow inside a submitted run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient

from runyard import Estimator, Experiment, Run, Workspace
from support import stop_yard, with_this_python

PLAIN = """
import argparse
import mlflow

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
lr = parser.parse_args().lr
mlflow.log_param("lr", lr)
mlflow.log_param("model", "cnn")
for step in range(3):
    mlflow.log_metric("loss", 1 / (step + 1), step=step)
mlflow.log_text("done", "notes.txt")
"""


def test_a_script_that_logs_with_mlflow_logs_to_its_own_run(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    config = with_this_python(project(train=PLAIN), arguments=["--lr", "1e-3"])
    run = experiment.submit(config)
    run.wait_for_completion()
    assert run.get_status() == "Completed"
    assert run.get_metrics() == {"loss": [1.0, 0.5, 1 / 3]}
    assert "notes.txt" in run.get_file_names()
    mlflow_run = client.get_run(run.id)
    assert mlflow_run.data.params == {"lr": "0.001", "model": "cnn"}
    assert mlflow_run.info.status == "FINISHED"
    assert len(client.search_runs([experiment.name])) == 1


def test_a_client_of_mlflow_2_can_log(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    estimator = Estimator(
        source_directory=str(project(train=PLAIN)),
        entry_script="train.py",
        compute_target="local",
        script_params={"--lr": 0.5},
        pip_packages=["mlflow-skinny<3"],
    )
    run = experiment.submit(estimator)
    run.wait_for_completion()
    assert run.get_metrics() == {"loss": [1.0, 0.5, 1 / 3]}
    assert client.get_run(run.id).data.params == {"lr": "0.5", "model": "cnn"}


def test_a_script_that_ends_its_mlflow_run_and_then_fails_has_failed(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    script = "import mlflow\nwith mlflow.start_run():\n    mlflow.log_metric('a', 1)\nraise ValueError('too late')"
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert client.get_run(run.id).info.status == "FAILED"


def test_a_tracking_server_of_the_user_is_kept(experiment: Experiment, project: Callable[..., Path]) -> None:
    names = ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID")
    script = f"import os\nprint([os.environ.get(name) for name in {names}])"
    config = with_this_python(project(train=script))
    config.run_config.environment.environment_variables = {"MLFLOW_TRACKING_URI": "http://elsewhere.example"}
    run = experiment.submit(config)
    run.wait_for_completion()
    assert "['http://elsewhere.example', None, None, None]" in driver_log(run)


def test_a_dry_run_does_not_show_the_token(experiment: Experiment, project: Callable[..., Path]) -> None:
    text = str(experiment.submit(with_this_python(project(train="pass")), dry_run=True))
    assert "MLFLOW_TRACKING_TOKEN" in text
    assert (experiment.workspace.home / "token").read_text().strip() not in text


def test_an_open_run_of_a_client_outlives_the_yard(
    experiment_id: str, client: MlflowClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next yard listens on the same port."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    run_id = client.create_run(experiment_id).info.run_id
    client.log_metric(run_id, "loss", 1.0)
    stop_yard(home)
    assert Workspace().get_mlflow_tracking_uri() == mlflow.get_tracking_uri()
    client.log_metric(run_id, "loss", 0.5, step=1)
    assert [metric.value for metric in client.get_metric_history(run_id, "loss")] == [1.0, 0.5]
    client.set_terminated(run_id)
    assert client.get_run(run_id).info.status == "FINISHED"


def driver_log(run: Run) -> str:
    folder = Path(run.experiment.workspace.home, "runs", run.id)
    return next(folder.rglob("70_driver_log*.txt")).read_text()
