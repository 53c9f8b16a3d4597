"""Runs that MLflow's client ends and continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run as MlflowRun

from runyard import Experiment, Run, Workspace
from runyard.client.connection import Connection
from runyard.spec.folder import RunFolder
from support import eventually, with_this_python


def row_of(run_id: str) -> dict[str, object]:
    rows = Connection().get("/api/runs/table", query=f"run_id={run_id}")["rows"]
    return dict(rows[0])


def status_and_end(client: MlflowClient, run_id: str) -> tuple[str, int | None]:
    info = client.get_run(run_id).info
    return info.status, info.end_time


def wait_until_after(milliseconds: int | None) -> None:
    """The next end must have another time."""
    eventually(lambda: time.time() * 1000 > (milliseconds or 0) + 1, "the next millisecond")


def matches(client: MlflowClient, experiment_id: str, text: str) -> list[str]:
    runs: list[MlflowRun] = client.search_runs([experiment_id], filter_string=text)
    return [run.info.run_id for run in runs]


@pytest.mark.parametrize("first", ["FAILED", "FINISHED", "KILLED"])
@pytest.mark.parametrize("second", ["FAILED", "FINISHED", "KILLED"])
def test_a_resumed_run_gets_the_status_and_time_of_its_new_end(
    client: MlflowClient, experiment_id: str, first: str, second: str
) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    client.set_terminated(run_id, first)
    status, first_end = status_and_end(client, run_id)
    assert status == first
    client.update_run(run_id, "RUNNING")
    assert status_and_end(client, run_id) == ("RUNNING", None)
    wait_until_after(first_end)
    client.set_terminated(run_id, second)
    status, second_end = status_and_end(client, run_id)
    assert (status, (second_end or 0) > (first_end or 0)) == (second, True)


def test_a_resumed_run_is_running_everywhere_until_it_ends_again(
    client: MlflowClient, workspace: Workspace, experiment_id: str
) -> None:
    with pytest.raises(ZeroDivisionError), mlflow.start_run(experiment_id=experiment_id) as active:
        _ = 1 / 0
    run_id = active.info.run_id
    run = Run.get(workspace, run_id)
    started_at = client.get_run(run_id).info.start_time
    assert run.get_status() == "Failed"
    assert (row_of(run_id)["status"], matches(client, experiment_id, "status = 'FAILED'")) == ("Failed", [run_id])

    with mlflow.start_run(run_id=run_id):
        mlflow.log_metric("loss", 0.25)
        details = Connection().get(f"/api/runs/{run_id}")
        assert (details["status"], details["end"], details["ended_at"]) == ("Running", None, None)
        assert not {"Failed", "Finalizing"} & set(details["timeline"])
        assert run.get_details()["status"] == "Running"
        row = row_of(run_id)
        assert (row["status"], row["ended_at"], row["metrics"]) == ("Running", None, {"loss": 0.25})
        assert matches(client, experiment_id, "status = 'RUNNING'") == [run_id]
        assert matches(client, experiment_id, "end_time > 0") == []

    row = row_of(run_id)
    assert (row["status"], row["reason"]) == ("Completed", "")
    details = Connection().get(f"/api/runs/{run_id}")
    assert (details["end"]["reason"], details["ended_at"]) == ("succeeded", row["ended_at"])
    assert "Failed" not in details["timeline"]
    assert details["timeline"]["Completed"] >= details["timeline"]["Running"]
    assert matches(client, experiment_id, "status = 'FINISHED'") == [run_id]
    run.wait_for_completion()
    info = client.get_run(run_id).info
    assert (info.status, info.start_time) == ("FINISHED", started_at)


def test_an_end_can_be_corrected_without_resuming_the_run(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    client.set_terminated(run_id, "FINISHED")
    client.set_terminated(run_id, "FAILED")
    assert status_and_end(client, run_id)[0] == "FAILED"


def test_an_end_that_is_sent_again_keeps_its_time(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    client.update_run(run_id, "FINISHED")
    end = status_and_end(client, run_id)
    wait_until_after(end[1])
    client.update_run(run_id, "FINISHED")
    assert status_and_end(client, run_id) == end


def test_a_submitted_run_ends_with_its_script_only(
    client: MlflowClient, experiment: Experiment, project: Callable[..., Path]
) -> None:
    run = experiment.submit(with_this_python(project(train="raise ValueError('bad lr')")))
    run.wait_for_completion(raise_on_error=False)
    client.update_run(run.id, "RUNNING")
    client.update_run(run.id, "FINISHED")
    assert status_and_end(client, run.id)[0] == "FAILED"


def test_an_interactive_run_that_mlflow_resumes_is_not_ended_with_its_first_process(
    client: MlflowClient, experiment: Experiment
) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.fail("bad lr")
    folder = RunFolder(run.folder)
    assert folder.client_lock.exists()
    client.update_run(run.id, "RUNNING")
    assert not folder.client_lock.exists()
    assert run.get_status() == "Running"
    client.set_terminated(run.id)
    assert run.get_status() == "Completed"
