"""Times and places that a client chooses: they are stored as sent, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, RunStatus
from mlflow.exceptions import MlflowException

from runyard import Workspace
from runyard.cli.formatting import duration_of
from runyard.run_table.rows import run_duration


def test_the_end_time_of_a_client_is_that_of_the_run(
    client: MlflowClient, workspace: Workspace, experiment_id: str
) -> None:
    run_id = client.create_run(experiment_id, start_time=1_700_000_000_000).info.run_id
    client.set_terminated(run_id, end_time=1_700_000_060_000)
    info = client.get_run(run_id).info
    assert (info.start_time, info.end_time) == (1_700_000_000_000, 1_700_000_060_000)
    assert workspace.get_run(run_id).get_details()["endTimeUtc"].startswith("2023-11-14T22:14:20")
    assert len(client.search_runs([experiment_id], "attributes.end_time = 1700000060000")) == 1


def test_an_end_time_is_refused_while_the_run_is_active(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    with pytest.raises(MlflowException, match="has not ended") as caught:
        client._tracking_client.store.update_run_info(run_id, None, 1_700_000_000_000, None)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert client.get_run(run_id).info.end_time is None
    client.set_terminated(run_id)


def test_the_time_zero_is_zero(client: MlflowClient, experiment_id: str) -> None:
    store = client._tracking_client.store  # the client itself replaces some zeros with the current time
    run_id = store.create_run(experiment_id, "somebody", 0, [], "at the beginning").info.run_id
    store.log_metric(run_id, Metric("loss", 0.5, timestamp=0, step=3))
    store.update_run_info(run_id, RunStatus.FINISHED, 0, None)
    filter_string = "attributes.start_time = 0 AND attributes.end_time = 0"
    assert [run.info.run_id for run in client.search_runs([experiment_id], filter_string)] == [run_id]
    assert [(point.timestamp, point.step) for point in client.get_metric_history(run_id, "loss")] == [(0, 3)]


def test_a_run_that_ended_before_its_start_has_no_duration() -> None:
    """A client chooses both times, and its clock may be wrong."""
    times = [(0.0, 0.0), (5.0, 2.0), (5.0, 8.0), (5.0, None)]
    views = [{"started_at": started, "ended_at": ended} for started, ended in times]
    assert [run_duration(view, now=9.0) for view in views] == [0.0, 0.0, 3.0, 4.0]
    assert [duration_of(view, now=9.0) for view in views] == ["0 ms", "0 ms", "3.0 s", "4.0 s"]


def test_artifacts_are_stored_at_the_location_that_the_client_chose(
    client: MlflowClient, workspace: Workspace, tmp_path: Path
) -> None:
    location = tmp_path / "artifacts"
    experiment_id = client.create_experiment(f"elsewhere {os.urandom(3).hex()}", artifact_location=str(location))
    assert client.get_experiment(experiment_id).artifact_location == str(location)
    run = client.create_run(experiment_id)
    run_id = run.info.run_id
    client.log_text(run_id, "all went well", "notes/a.txt")
    client.set_terminated(run_id)
    assert run.info.artifact_uri == f"{location}/{run_id}/artifacts"
    assert (location / run_id / "artifacts" / "notes" / "a.txt").read_text() == "all went well"
    assert [file.path for file in client.list_artifacts(run_id, "notes")] == ["notes/a.txt"]
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/notes/a.txt") == "all went well"
    found_run = client.search_runs([experiment_id], f"attributes.artifact_uri LIKE '{location}/%'")
    assert [match.info.artifact_uri for match in found_run] == [run.info.artifact_uri]
    properties = workspace.get_run(run_id).get_properties()
    assert properties["mlflow.artifactUri"] == run.info.artifact_uri


def test_runs_of_other_experiments_store_their_artifacts_in_the_yard(client: MlflowClient, experiment_id: str) -> None:
    run = client.create_run(experiment_id)
    assert run.info.artifact_uri == f"mlflow-artifacts:/{run.info.run_id}"
    client.set_terminated(run.info.run_id)


def test_a_tag_with_the_name_of_a_run_renames_it(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id, run_name="old").info.run_id
    client.set_tag(run_id, "mlflow.runName", "new")
    client.set_terminated(run_id)
    assert client.get_run(run_id).info.run_name == "new"
    assert len(client.search_runs([experiment_id], "attributes.run_name = 'new'")) == 1
