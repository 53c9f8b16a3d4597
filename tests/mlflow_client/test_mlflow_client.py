"""Runs, metrics, parameters, tags, artifacts and models of the stock MLflow client, read through both APIs."""

from __future__ import annotations

import math
from pathlib import Path

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException, RestException

from runyard import Experiment, Run, Workspace


def test_a_logged_run_is_read_back(client: MlflowClient, experiment_id: str, tmp_path: Path) -> None:
    """B15.108: the stock client with the URI of the workspace."""
    with mlflow.start_run(run_name="first try", tags={"team": "vision"}) as started:
        mlflow.log_params({"lr": 0.1, "model": "cnn"})
        mlflow.log_metric("loss", 0.5, step=3)
        mlflow.log_metrics({"accuracy": 0.75, "f1": 0.25}, step=4)
        mlflow.log_text("hello", "notes/hello.txt")
        (tmp_path / "weights").mkdir()
        (tmp_path / "weights" / "a.bin").write_bytes(bytes(range(256)))
        mlflow.log_artifacts(str(tmp_path / "weights"), "weights")
    run = client.get_run(started.info.run_id)
    assert run.info.run_name == "first try"
    assert run.info.status == "FINISHED"
    assert run.info.experiment_id == experiment_id
    assert run.info.start_time <= run.info.end_time
    assert run.data.params == {"lr": "0.1", "model": "cnn"}
    assert run.data.metrics == {"loss": 0.5, "accuracy": 0.75, "f1": 0.25}
    assert run.data.tags["team"] == "vision"
    assert {metric.key: metric.step for metric in run.data._metric_objs} == {"loss": 3, "accuracy": 4, "f1": 4}
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["notes", "weights"]
    assert [(file.path, file.file_size) for file in client.list_artifacts(run.info.run_id, "weights")] == [
        ("weights/a.bin", 256)
    ]
    assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes/hello.txt") == "hello"
    fetched = client.download_artifacts(run.info.run_id, "weights", str(tmp_path / "fetched"))
    assert Path(fetched, "a.bin").read_bytes() == bytes(range(256))


def test_the_yard_reads_mlflow_runs(client: MlflowClient, experiment_id: str, workspace: Workspace) -> None:
    with mlflow.start_run(run_name="seen") as started:
        mlflow.log_param("depth", 3)
        for step in range(3):
            mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
        mlflow.log_dict({"a": 1}, "outputs/config.json")
    run = Run(Experiment(workspace, experiment_id), started.info.run_id)
    assert run.get_status() == "Completed"
    assert run.name == "seen"
    assert run.get_metrics() == {"loss": [1.0, 0.5, 1 / 3]}
    assert run.get_file_names() == ["outputs/config.json"]
    table = workspace.connection.get("/api/runs/table", experiment=experiment_id)
    assert table["rows"][0]["params"] == {"depth": 3}


def test_mlflow_reads_sdk_runs(client: MlflowClient, experiment: Experiment) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.log("loss", 0.5)
    run.log("loss", 0.25)
    run.tag("team", "vision")
    mlflow_run = client.get_run(run.id)
    assert mlflow_run.info.status == "RUNNING"
    assert mlflow_run.data.metrics == {"loss": 0.25}
    assert mlflow_run.data.tags["team"] == "vision"
    assert [(metric.step, metric.value) for metric in client.get_metric_history(run.id, "loss")] == [
        (0, 0.5),
        (1, 0.25),
    ]
    matches = client.search_runs([experiment.name], "metrics.loss < 0.3")
    assert [match.info.run_id for match in matches] == [run.id]
    run.complete()


def test_non_finite_numbers_are_kept(client: MlflowClient, experiment_id: str) -> None:
    values = [math.nan, math.inf, -math.inf, 1e-310, 1.7976931348623157e308]
    with mlflow.start_run() as started:
        for step, value in enumerate(values):
            mlflow.log_metric("odd", value, step=step)
    history = [metric.value for metric in client.get_metric_history(started.info.run_id, "odd")]
    assert math.isnan(history[0])
    assert history[1:] == values[1:]


def test_histories_keep_steps_and_milliseconds(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    logged = [Metric("loss", index / 7, 1_700_000_000_001 + index * 333, index * 10) for index in range(2_500)]
    for begin in range(0, len(logged), 1000):
        client.log_batch(run_id, metrics=logged[begin : begin + 1000])
    history = client.get_metric_history(run_id, "loss")
    assert [(m.value, m.timestamp, m.step) for m in history] == [(m.value, m.timestamp, m.step) for m in logged]
    store = client._tracking_client.store
    page = store.get_metric_history(run_id, "loss", max_results=1000)
    assert len(page) == 1000
    rest = store.get_metric_history(run_id, "loss", max_results=2000, page_token=page.token)
    assert [metric.step for metric in rest][:2] == [10_000, 10_010]
    assert len(rest) == 1500
    client.set_terminated(run_id)


def test_points_that_arrive_out_of_order_are_sorted_by_time(client: MlflowClient, experiment_id: str) -> None:
    """Clients that log in background threads, such as that of Transformers, send points in arbitrary order."""
    run_id = client.create_run(experiment_id).info.run_id
    start = 1_700_000_000_000
    for step, time in ((1, start), (3, start + 5), (2, start + 4), (5, start + 9), (4, start + 9)):
        client.log_metric(run_id, "loss", step / 10, timestamp=time, step=step)
    assert [metric.step for metric in client.get_metric_history(run_id, "loss")] == [1, 2, 3, 4, 5]
    page = client._tracking_client.store.get_metric_history(run_id, "loss", max_results=2)
    assert [metric.step for metric in page] == [1, 2]
    client.set_terminated(run_id)


def test_nested_runs_are_children(client: MlflowClient, experiment_id: str, workspace: Workspace) -> None:
    with mlflow.start_run(run_name="parent") as parent, mlflow.start_run(run_name="child", nested=True) as child:
        mlflow.log_metric("loss", 1)
    matches = client.search_runs([experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    assert [match.info.run_name for match in matches] == ["child"]
    run = Run(Experiment(workspace, experiment_id), parent.info.run_id)
    assert [child_run.id for child_run in run.get_children()] == [child.info.run_id]


@pytest.mark.parametrize(
    ("mlflow_status", "status"), [("FAILED", "Failed"), ("KILLED", "Canceled"), ("FINISHED", "Completed")]
)
def test_the_status_set_by_the_client_ends_the_run(
    client: MlflowClient, experiment_id: str, workspace: Workspace, mlflow_status: str, status: str
) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    client.set_terminated(run_id, mlflow_status)
    assert client.get_run(run_id).info.status == mlflow_status
    assert Run(Experiment(workspace, experiment_id), run_id).get_status() == status


def test_a_finished_run_accepts_further_values(client: MlflowClient, experiment_id: str) -> None:
    with mlflow.start_run() as first:
        mlflow.log_metric("loss", 1)
    with mlflow.start_run(run_id=first.info.run_id):
        mlflow.log_metric("loss", 0.5, step=1)
        mlflow.set_tag("again", "yes")
    run = client.get_run(first.info.run_id)
    assert run.data.metrics == {"loss": 0.5}
    assert run.data.tags["again"] == "yes"
    assert run.info.status == "FINISHED"


def test_parameters_cannot_be_overwritten(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    client.log_param(run_id, "lr", 0.1)
    client.log_param(run_id, "lr", 0.1)
    with pytest.raises(MlflowException, match=r"'lr' of run .* is already '0.1' and cannot be set to '0.2'"):
        client.log_param(run_id, "lr", 0.2)
    with pytest.raises(MlflowException, match="cannot be set to"):
        client.log_batch(run_id, params=[Param("new", "1"), Param("lr", "0.3")])
    assert client.get_run(run_id).data.params == {"lr": "0.1"}
    client.set_terminated(run_id)


def test_tags_are_changed_and_deleted_and_a_run_is_renamed(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id, run_name="old", tags={"a": "1"}).info.run_id
    client.log_batch(run_id, tags=[RunTag("a", "2"), RunTag("b", "3")])
    client.delete_tag(run_id, "b")
    client.update_run(run_id, status="FINISHED", name="new")
    run = client.get_run(run_id)
    assert run.data.tags["a"] == "2"
    assert "b" not in run.data.tags
    assert run.info.run_name == run.data.tags["mlflow.runName"] == "new"
    with pytest.raises(MlflowException, match="No tag with name: b"):
        client.delete_tag(run_id, "b")


def test_a_deleted_run_is_hidden_until_it_is_restored(client: MlflowClient, experiment_id: str) -> None:
    with mlflow.start_run() as started:
        pass
    run_id = started.info.run_id
    client.delete_run(run_id)
    assert client.get_run(run_id).info.lifecycle_stage == "deleted"
    assert list(client.search_runs([experiment_id])) == []
    assert len(client.search_runs([experiment_id], run_view_type=ViewType.DELETED_ONLY)) == 1
    client.restore_run(run_id)
    assert len(client.search_runs([experiment_id])) == 1


def test_experiments_have_arbitrary_names_and_tags_and_can_be_deleted(client: MlflowClient, experiment_id: str) -> None:
    title = client.get_experiment(experiment_id).name
    with pytest.raises(MlflowException, match="already"):
        client.create_experiment(title)
    other = client.create_experiment(f"/Users/ada/{title} ü", tags={"owner": "me"})
    client.set_experiment_tag(other, "stage", "draft")
    matches = client.search_experiments(filter_string="tags.stage = 'draft' AND name LIKE '/Users/%'")
    assert [match.experiment_id for match in matches if match.experiment_id == other] == [other]
    assert client.get_experiment(other).tags == {"owner": "me", "stage": "draft"}
    client.rename_experiment(other, f"{title} renamed")
    assert client.get_experiment_by_name(f"{title} renamed").experiment_id == other
    client.delete_experiment(other)
    assert client.get_experiment(other).lifecycle_stage == "deleted"
    with pytest.raises(MlflowException, match="is deleted"):
        client.create_run(other)
    client.restore_experiment(other)
    assert client.get_experiment(other).lifecycle_stage == "active"


def test_the_default_experiment_exists(client: MlflowClient) -> None:
    run = client.create_run("0")
    assert run.info.experiment_id == "0"
    assert client.get_experiment("0").name == "Default"
    client.set_terminated(run.info.run_id)


def test_datasets_of_a_run_are_stored_and_searchable(client: MlflowClient, experiment_id: str) -> None:
    dataset = MetaDataset(CodeDatasetSource({"mlflow.source.name": "train.py"}), name="digits")
    with mlflow.start_run() as started:
        mlflow.log_input(dataset, context="training")
    (logged,) = client.get_run(started.info.run_id).inputs.dataset_inputs
    assert logged.dataset.name == "digits"
    assert logged.dataset.digest == dataset.digest
    assert len(client.search_runs([experiment_id], "dataset.name = 'digits' AND dataset.context = 'training'")) == 1
    assert len(client.search_runs([experiment_id], "dataset.name = 'letters'")) == 0


def test_logged_models_have_files_and_metrics_and_can_be_deleted(
    client: MlflowClient, experiment_id: str, tmp_path: Path
) -> None:
    with mlflow.start_run() as started:
        model = mlflow.initialize_logged_model(name="net", params={"depth": "3"}, tags={"team": "vision"})
        mlflow.log_metric("accuracy", 0.9, model_id=model.model_id)
        (tmp_path / "weights.bin").write_bytes(b"1234")
        client.log_model_artifact(model.model_id, str(tmp_path / "weights.bin"))
        mlflow.finalize_logged_model(model.model_id, "READY")
        mlflow.log_outputs([mlflow.entities.LoggedModelOutput(model.model_id, step=1)])
    logged = client.get_logged_model(model.model_id)
    assert (logged.status.value, logged.params, logged.source_run_id) == ("READY", {"depth": "3"}, started.info.run_id)
    assert [(metric.key, metric.value) for metric in logged.metrics] == [("accuracy", 0.9)]
    assert client.list_logged_model_artifacts(model.model_id)[0].path == "weights.bin"
    assert [output.model_id for output in client.get_run(started.info.run_id).outputs.model_outputs] == [model.model_id]
    matches = client.search_logged_models([experiment_id], filter_string="metrics.accuracy > 0.8 AND name = 'net'")
    assert [match.model_id for match in matches] == [model.model_id]
    assert list(client.search_logged_models([experiment_id], filter_string="params.depth = '4'")) == []
    client.delete_logged_model(model.model_id)
    with pytest.raises(MlflowException, match="deleted"):
        client.get_logged_model(model.model_id)


def test_unknown_objects_and_unsupported_endpoints_are_errors(client: MlflowClient, experiment_id: str) -> None:
    with pytest.raises(MlflowException, match="no run 'nobody' in this yard"):
        client.get_run("nobody")
    with pytest.raises(RestException, match="no traces"):
        client._tracking_client.store.delete_scorer(experiment_id, "judge")
    with pytest.raises(MlflowException, match="No Experiment with id=nowhere exists"):
        client.create_run("nowhere")


def test_requests_without_the_token_are_rejected(tracking: str) -> None:
    url = f"{tracking}/api/2.0/mlflow/experiments/get?experiment_id=0"
    assert requests.get(url, timeout=20).status_code == 401
    assert requests.get(url, headers=auth_headers(), timeout=20).status_code == 200


def auth_headers() -> dict[str, str]:
    from mlflow.environment_variables import MLFLOW_TRACKING_TOKEN

    return {"Authorization": f"Bearer {MLFLOW_TRACKING_TOKEN.get()}"}
