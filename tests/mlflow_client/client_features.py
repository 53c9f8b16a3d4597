"""The features of MLflow's client, executed against a yard by any version of the client.

`python client_features.py`, with MLFLOW_TRACKING_URI and MLFLOW_TRACKING_TOKEN set, prints a JSON object: for each
feature "yes", "no" if the yard answers that it does not support it, "—" if the client does not have it, or a traceback.
Each function is a row of the table in docs/guides/mlflow.md; its docstring is the text of the row.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import sys
import tempfile
import traceback
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

client = MlflowClient()


class Absent(Exception):
    """The client does not have the feature."""


def need(*names):
    """Raise Absent if the client or the module `mlflow` lacks one of the names."""
    for name in names:
        if not hasattr(client, name) and not hasattr(mlflow, name):
            raise Absent(name)


def unique(name):
    return f"{name} {os.urandom(4).hex()}"


def new_experiment():
    return client.create_experiment(unique("features"))


def new_run():
    """A run that has ended: it accepts further values, and does not keep the yard running."""
    run_id = client.create_run(new_experiment()).info.run_id
    client.set_terminated(run_id)
    return run_id


def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except MlflowException as error:
        return error.error_code
    raise AssertionError("expected an error")


def experiments():
    """experiments: create, get, search, rename, tag, delete, restore"""
    name = unique("größe / ü")
    experiment_id = client.create_experiment(name, tags={"team": "vision"})
    assert client.get_experiment(experiment_id).tags == {"team": "vision"}
    assert client.get_experiment_by_name(name).experiment_id == experiment_id
    assert refused(client.create_experiment, name) == "RESOURCE_ALREADY_EXISTS"
    client.set_experiment_tag(experiment_id, "stage", name)
    matches = client.search_experiments(filter_string=f"tags.stage = '{name}'", order_by=["name ASC"])
    assert [match.experiment_id for match in matches] == [experiment_id]
    client.rename_experiment(experiment_id, f"{name} renamed")
    assert client.get_experiment(experiment_id).name == f"{name} renamed"
    client.delete_experiment(experiment_id)
    assert client.get_experiment(experiment_id).lifecycle_stage == "deleted"
    client.restore_experiment(experiment_id)
    assert client.get_experiment(experiment_id).lifecycle_stage == "active"


def runs():
    """runs: create, end, resume, nest, rename, tag, delete, restore"""
    experiment_id = new_experiment()
    outer = mlflow.start_run(experiment_id=experiment_id, run_name="outer", description="a note")
    with mlflow.start_run(experiment_id=experiment_id, run_name="inner", nested=True) as inner:
        mlflow.set_tag("team", "vision")
    mlflow.end_run()
    run = client.get_run(inner.info.run_id)
    assert (run.info.run_name, run.info.status, run.data.tags["team"]) == ("inner", "FINISHED", "vision")
    assert run.data.tags["mlflow.parentRunId"] == outer.info.run_id
    assert client.get_parent_run(run.info.run_id).info.run_id == outer.info.run_id
    assert client.get_run(outer.info.run_id).data.tags["mlflow.note.content"] == "a note"
    client.set_terminated(outer.info.run_id, "FAILED")
    with mlflow.start_run(run_id=outer.info.run_id):
        assert client.get_run(outer.info.run_id).info.status == "RUNNING"
    assert client.get_run(outer.info.run_id).info.status == "FINISHED"
    client.update_run(outer.info.run_id, name="renamed")
    assert client.get_run(outer.info.run_id).info.run_name == "renamed"
    client.delete_tag(run.info.run_id, "team")
    assert "team" not in client.get_run(run.info.run_id).data.tags
    client.delete_run(run.info.run_id)
    assert [match.info.run_id for match in client.search_runs([experiment_id])] == [outer.info.run_id]
    assert len(client.search_runs([experiment_id], run_view_type=ViewType.DELETED_ONLY)) == 1
    client.restore_run(run.info.run_id)
    assert len(client.search_runs([experiment_id])) == 2


def metrics():
    """metrics: single, in batches, with steps and times, NaN and infinity, histories"""
    run_id = new_run()
    start = 1_700_000_000_000
    client.log_batch(run_id, metrics=[Metric("loss", 1 / (step + 1), start + step, step) for step in range(300)])
    for step, value in enumerate([math.nan, math.inf, -math.inf, 1e-310]):
        client.log_metric(run_id, "odd", value, start, step)
    history = client.get_metric_history(run_id, "loss")
    assert [(m.step, m.timestamp, m.value) for m in history] == [(s, start + s, 1 / (s + 1)) for s in range(300)]
    assert math.isnan(client.get_metric_history(run_id, "odd")[0].value)
    assert client.get_run(run_id).data.metrics == {"loss": 1 / 300, "odd": 1e-310}


def asynchronous_logging():
    """asynchronous logging (`synchronous=False`)"""
    need("flush_async_logging")
    with mlflow.start_run(experiment_id=new_experiment()) as run:
        for step in range(50):
            mlflow.log_metric("loss", step / 50, step=step, synchronous=False)
        mlflow.log_params({"a": 1, "b": 2}, synchronous=False)
        mlflow.flush_async_logging()
    assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == list(range(50))
    assert client.get_run(run.info.run_id).data.metrics == {"loss": 49 / 50}
    assert client.get_run(run.info.run_id).data.params == {"a": "1", "b": "2"}


def parameters():
    """parameters: written once"""
    run_id = new_run()
    client.log_batch(run_id, params=[Param("lr", "0.1")], tags=[RunTag("team", "vision")])
    client.log_param(run_id, "lr", 0.1)
    assert refused(client.log_param, run_id, "lr", 0.2) == "INVALID_PARAMETER_VALUE"
    assert client.get_run(run_id).data.params == {"lr": "0.1"}


def search():
    """search of runs: filters, orders, pages"""
    experiment_id = new_experiment()
    for depth in range(4):
        with mlflow.start_run(experiment_id=experiment_id, run_name=f"depth {depth}"):
            mlflow.log_metric("accuracy", depth / 4)
            mlflow.log_param("depth", depth)
    condition = "metrics.accuracy > 0.2 AND params.depth != '3' AND attributes.status = 'FINISHED'"
    matches = client.search_runs([experiment_id], condition, order_by=["metrics.accuracy DESC"])
    assert [match.info.run_name for match in matches] == ["depth 2", "depth 1"]
    page = client.search_runs([experiment_id], max_results=3, order_by=["params.depth ASC"])
    rest = client.search_runs([experiment_id], max_results=3, order_by=["params.depth ASC"], page_token=page.token)
    assert [run.data.params["depth"] for run in [*page, *rest]] == ["0", "1", "2", "3"]
    assert refused(client.search_runs, [experiment_id], "metrics.accuracy ~ 1") == "INVALID_PARAMETER_VALUE"


def artifacts():
    """artifacts: upload, list, download, delete"""
    with mlflow.start_run(experiment_id=new_experiment()) as run, tempfile.TemporaryDirectory() as folder:
        Path(folder, "a b.bin").write_bytes(bytes(range(256)))
        mlflow.log_artifacts(folder, "weights")
        mlflow.log_artifact(str(Path(folder, "a b.bin")))
        mlflow.log_text("hello", "notes/hello.txt")
        mlflow.log_dict({"a": 1}, "config.json")
        run_id = run.info.run_id
        assert sorted(file.path for file in client.list_artifacts(run_id)) == [
            "a b.bin",
            "config.json",
            "notes",
            "weights",
        ]
        assert [file.file_size for file in client.list_artifacts(run_id, "weights")] == [256]
        assert mlflow.artifacts.load_text(f"runs:/{run_id}/notes/hello.txt") == "hello"
        path = client.download_artifacts(run_id, "weights", folder)
        assert Path(path, "a b.bin").read_bytes() == bytes(range(256))
        repository = mlflow.store.artifact.artifact_repository_registry.get_artifact_repository(run.info.artifact_uri)
        repository.delete_artifacts("notes")
        assert "notes" not in [file.path for file in client.list_artifacts(run_id)]


def datasets():
    """datasets of runs: log and search"""
    experiment_id = new_experiment()
    with mlflow.start_run(experiment_id=experiment_id) as run:
        mlflow.log_input(MetaDataset(CodeDatasetSource({}), name="digits"), context="training")
    assert client.get_run(run.info.run_id).inputs.dataset_inputs[0].dataset.name == "digits"
    assert len(client.search_runs([experiment_id], "dataset.name = 'digits' AND dataset.context = 'training'")) == 1
    assert len(client.search_runs([experiment_id], "dataset.name = 'letters'")) == 0


def children_of_scripts():
    """runs that a submitted script creates are children of its run"""
    experiment_id, job = new_experiment(), new_run()
    token = os.environ["MLFLOW_TRACKING_TOKEN"]
    os.environ["MLFLOW_TRACKING_TOKEN"] = f"{token}.{job}"
    try:
        with mlflow.start_run(experiment_id=experiment_id) as run:
            pass
        other = client.create_run(experiment_id)
        client.set_terminated(other.info.run_id)
    finally:
        os.environ["MLFLOW_TRACKING_TOKEN"] = token
    for child in (run, other):
        assert client.get_run(child.info.run_id).data.tags["mlflow.parentRunId"] == job


def logged_models():
    """logged models: records, parameters, metrics, tags, files, search, deletion"""
    need("initialize_logged_model", "search_logged_models")
    experiment_id = new_experiment()
    with mlflow.start_run(experiment_id=experiment_id) as run, tempfile.TemporaryDirectory() as folder:
        model = mlflow.initialize_logged_model(name="net", params={"depth": "3"}, tags={"team": "vision"})
        mlflow.log_metric("accuracy", 0.9, model_id=model.model_id)
        Path(folder, "weights.bin").write_bytes(b"1234")
        client.log_model_artifact(model.model_id, str(Path(folder, "weights.bin")))
        mlflow.finalize_logged_model(model.model_id, "READY")
    logged = client.get_logged_model(model.model_id)
    assert (logged.source_run_id, logged.params) == (run.info.run_id, {"depth": "3"})
    matches = client.search_logged_models([experiment_id], filter_string="metrics.accuracy > 0.8")
    assert [match.model_id for match in matches] == [model.model_id]
    client.delete_logged_model(model.model_id)
    assert refused(client.get_logged_model, model.model_id) == "RESOURCE_DOES_NOT_EXIST"


def _run_with_model():
    with mlflow.start_run(experiment_id=new_experiment()) as run:
        mlflow.log_text("flavors: {}", "net/MLmodel")
    return run.info.run_id


def registered_models():
    """registered models: create, get, search, describe, tag, rename, delete"""
    name = unique("net")
    client.create_registered_model(name, {"team": "vision"}, "a network")
    assert refused(client.create_registered_model, name) == "RESOURCE_ALREADY_EXISTS"
    client.update_registered_model(name, "a deep network")
    client.set_registered_model_tag(name, "task", "digits")
    model = client.get_registered_model(name)
    assert (model.description, model.tags) == ("a deep network", {"team": "vision", "task": "digits"})
    client.delete_registered_model_tag(name, "task")
    assert [match.name for match in client.search_registered_models(f"name = '{name}'")] == [name]
    client.rename_registered_model(name, f"{name} renamed")
    client.delete_registered_model(f"{name} renamed")
    assert refused(client.get_registered_model, f"{name} renamed") == "RESOURCE_DOES_NOT_EXIST"


def model_versions():
    """versions: `mlflow.register_model`, get, search, describe, tag, delete; files by `models:/NAME/VERSION`"""
    run_id, name = _run_with_model(), unique("net")
    version = mlflow.register_model(f"runs:/{run_id}/net", name)
    client.update_model_version(name, version.version, "the first")
    client.set_model_version_tag(name, version.version, "team", "vision")
    stored = client.get_model_version(name, version.version)
    assert (stored.run_id, stored.description, stored.tags["team"]) == (run_id, "the first", "vision")
    assert [match.version for match in client.search_model_versions(f"name = '{name}'")] == [version.version]
    with tempfile.TemporaryDirectory() as folder:
        path = mlflow.artifacts.download_artifacts(f"models:/{name}/{version.version}", dst_path=folder)
        assert Path(path, "MLmodel").read_text().startswith("flavors")
    client.delete_model_version(name, version.version)
    assert refused(client.get_model_version, name, version.version) == "RESOURCE_DOES_NOT_EXIST"


def aliases():
    """aliases, and files by `models:/NAME@ALIAS`"""
    run_id, name = _run_with_model(), unique("net")
    version = mlflow.register_model(f"runs:/{run_id}/net", name)
    client.set_registered_model_alias(name, "champion", version.version)
    assert client.get_model_version_by_alias(name, "champion").version == version.version
    with tempfile.TemporaryDirectory() as folder:
        path = mlflow.artifacts.download_artifacts(f"models:/{name}@champion", dst_path=folder)
        assert Path(path, "MLmodel").exists()
    client.delete_registered_model_alias(name, "champion")
    assert refused(client.get_model_version_by_alias, name, "champion") in (
        "RESOURCE_DOES_NOT_EXIST",
        "INVALID_PARAMETER_VALUE",
    )


def stages():
    """stages of versions"""
    run_id, name = _run_with_model(), unique("net")
    first = mlflow.register_model(f"runs:/{run_id}/net", name)
    second = mlflow.register_model(f"runs:/{run_id}/net", name)
    client.transition_model_version_stage(name, first.version, "Production")
    client.transition_model_version_stage(name, second.version, "Production", archive_existing_versions=True)
    assert client.get_model_version(name, first.version).current_stage == "Archived"
    assert [v.version for v in client.get_latest_versions(name, ["Production"])] == [second.version]


def webhooks():
    """webhooks: create, get, list, update, delete"""
    need("create_webhook")
    webhook = client.create_webhook(
        f"hook-{os.urandom(4).hex()}", "https://example.com/hook", ["registered_model.created"]
    )
    assert client.get_webhook(webhook.webhook_id).url == "https://example.com/hook"
    assert webhook.webhook_id in [item.webhook_id for item in client.list_webhooks()]
    client.update_webhook(webhook.webhook_id, description="changed")
    client.delete_webhook(webhook.webhook_id)
    assert webhook.webhook_id not in [item.webhook_id for item in client.list_webhooks()]


def traces():
    """traces"""
    need("search_traces")
    client.search_traces([new_experiment()])


def evaluation_datasets():
    """evaluation datasets"""
    need("create_dataset", "search_datasets")
    client.create_dataset(unique("questions"), [new_experiment()])


def prompts():
    """prompts"""
    need("register_prompt")
    client.register_prompt(f"prompt-{os.urandom(4).hex()}", "Say {{word}}")


FEATURES = (
    experiments, runs, metrics, asynchronous_logging, parameters, search, artifacts, datasets, children_of_scripts,
    logged_models, registered_models, model_versions, aliases, stages, webhooks, traces, evaluation_datasets, prompts,
)  # fmt: skip


def main() -> None:
    results = {}
    for feature in FEATURES:
        try:
            feature()
            outcome = "yes"
        except Absent:
            outcome = "—"
        except Exception as error:  # noqa: BLE001 - the result of the feature
            is_unsupported = getattr(error, "error_code", "") == "ENDPOINT_NOT_FOUND"
            outcome = "no" if is_unsupported else traceback.format_exc()
        while mlflow.active_run() is not None:
            mlflow.end_run()
        results[str(inspect.getdoc(feature))] = outcome
    sys.stdout.write("\n" + json.dumps({"version": mlflow.__version__, "features": results}) + "\n")


if __name__ == "__main__":
    main()
