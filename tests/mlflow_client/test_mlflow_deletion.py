"""Deleted experiments and runs: what a client still may do with them, as in MLflow's own server."""

from __future__ import annotations

import os

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

from runyard import Workspace


def test_the_runs_of_an_experiment_are_deleted_and_restored_with_it(client: MlflowClient, experiment_id: str) -> None:
    run_ids = {ended_run(client, experiment_id) for _ in range(3)}
    client.delete_experiment(experiment_id)
    assert client.search_runs([experiment_id]) == []
    deleted = client.search_runs([experiment_id], run_view_type=ViewType.DELETED_ONLY)
    assert {run.info.run_id for run in deleted} == run_ids
    assert {client.get_run(run_id).info.lifecycle_stage for run_id in run_ids} == {"deleted"}
    client.restore_experiment(experiment_id)
    assert {run.info.run_id for run in client.search_runs([experiment_id])} == run_ids


def test_restoring_an_experiment_restores_runs_that_were_deleted_before_it(
    client: MlflowClient, experiment_id: str
) -> None:
    run_id = ended_run(client, experiment_id)
    client.delete_run(run_id)
    client.delete_experiment(experiment_id)
    client.restore_experiment(experiment_id)
    assert client.get_run(run_id).info.lifecycle_stage == "active"


def test_runs_of_other_experiments_are_not_deleted(client: MlflowClient, experiment_id: str) -> None:
    other = ended_run(client, client.create_experiment(f"other {os.urandom(3).hex()}"))
    client.delete_experiment(experiment_id)
    assert client.get_run(other).info.lifecycle_stage == "active"


def test_a_deleted_experiment_cannot_be_changed(client: MlflowClient, experiment_id: str) -> None:
    client.set_experiment_tag(experiment_id, "team", "vision")
    client.delete_experiment(experiment_id)
    for change, code in (
        (lambda: client.create_run(experiment_id), "INVALID_PARAMETER_VALUE"),
        (lambda: client.set_experiment_tag(experiment_id, "team", "text"), "INVALID_PARAMETER_VALUE"),
        (lambda: client.delete_experiment_tag(experiment_id, "team"), "INVALID_PARAMETER_VALUE"),
        (lambda: client.rename_experiment(experiment_id, "other"), "INVALID_STATE"),
        (lambda: client.delete_experiment(experiment_id), "RESOURCE_DOES_NOT_EXIST"),
    ):
        assert error_code(change) == code
    client.restore_experiment(experiment_id)
    assert error_code(lambda: client.restore_experiment(experiment_id)) == "RESOURCE_DOES_NOT_EXIST"
    assert client.get_experiment(experiment_id).tags["team"] == "vision"


def test_a_deleted_run_refuses_everything_that_a_client_logs(
    client: MlflowClient, workspace: Workspace, experiment_id: str
) -> None:
    run_id = ended_run(client, experiment_id)
    client.set_tag(run_id, "team", "vision")
    client.delete_run(run_id)
    dataset = DatasetInput(Dataset("digits", "1", "local", "{}"))
    for change in (
        lambda: client.log_metric(run_id, "loss", 1.0),
        lambda: client.log_param(run_id, "model", "cnn"),
        lambda: client.set_tag(run_id, "team", "text"),
        lambda: client.delete_tag(run_id, "team"),
        lambda: client.log_batch(run_id, [Metric("loss", 1.0, 1, 0)], [Param("model", "cnn")], [RunTag("a", "b")]),
        lambda: client.log_inputs(run_id, [dataset]),
        lambda: client.update_run(run_id, name="other"),
        lambda: client.set_terminated(run_id, "FAILED"),
    ):
        with pytest.raises(MlflowException, match="must be in the 'active' state") as caught:
            change()
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    run = client.get_run(run_id)
    assert (run.data.metrics, run.data.params, run.data.tags["team"]) == ({}, {}, "vision")
    assert (run.info.status, run.inputs.dataset_inputs) == ("FINISHED", [])
    client.restore_run(run_id)
    client.log_metric(run_id, "loss", 1.0)
    assert client.get_run(run_id).data.metrics == {"loss": 1.0}


def test_a_run_that_does_not_exist_cannot_be_deleted(client: MlflowClient) -> None:
    assert error_code(lambda: client.delete_run("nobody")) == "RESOURCE_DOES_NOT_EXIST"
    assert error_code(lambda: client.restore_run("nobody")) == "RESOURCE_DOES_NOT_EXIST"


def test_the_script_of_a_submitted_run_may_log_with_run_log_after_its_deletion(
    client: MlflowClient, workspace: Workspace, experiment_id: str
) -> None:
    """Only MLflow's API refuses; a script must not fail because of a click in another program."""
    run = workspace.get_run(ended_run(client, experiment_id))
    client.delete_run(run.id)
    run.tag("note", "still writable")
    assert run.get_tags()["note"] == "still writable"


def ended_run(client: MlflowClient, experiment_id: str) -> str:
    run_id = str(client.create_run(experiment_id).info.run_id)
    client.set_terminated(run_id)
    return run_id


def error_code(change: object) -> str:
    with pytest.raises(MlflowException) as caught:
        change()  # type: ignore[operator]
    return str(caught.value.error_code)


def test_mlflow_start_run_of_a_deleted_run_is_an_error(client: MlflowClient, experiment_id: str) -> None:
    run_id = ended_run(client, experiment_id)
    client.delete_run(run_id)
    with pytest.raises(MlflowException, match="deleted"):
        mlflow.start_run(run_id=run_id)
