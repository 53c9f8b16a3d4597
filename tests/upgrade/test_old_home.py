"""A home folder that an earlier version wrote is opened, read and used by the current one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from home_facts import all_runs, code_digests, dataset_facts, export_runs, file_digests, model_facts, run_facts
from old_homes import OldHome

from runyard import (
    ComputeTarget,
    Dataset,
    Datastore,
    Environment,
    Experiment,
    Model,
    ScriptRunConfig,
    Webservice,
    Workspace,
)
from runyard.hyperdrive import HyperDriveRun
from support import eventually

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("old home")]

Facts = dict[str, Any]


def test_runs_keep_their_status_times_labels_errors_metrics_and_children(workspace: Workspace, facts: Facts) -> None:
    runs = all_runs(workspace)
    for run_id, expected in facts["runs"].items():
        assert run_facts(runs[run_id]) == expected


def test_each_outcome_is_among_the_old_runs(old_home: OldHome) -> None:
    statuses = {role: old_home.run(role).get_status() for role in ("completed", "failed", "canceled", "imported")}
    assert statuses == {
        "completed": "Completed",
        "failed": "Failed",
        "canceled": "Canceled",
        "imported": "Completed",
    }
    error = old_home.run("failed").get_details()["error"]["error"]
    assert error["message"] == "ValueError: the learning rate must be positive, got -1.0"
    assert len(list(old_home.run("parent").get_children())) == 3
    assert len(list(old_home.run("sweep").get_children())) == 3


def test_the_run_table_and_every_logged_point_are_exported_as_before(
    old_home: OldHome, facts: Facts, tmp_path: Path
) -> None:
    rows = export_runs(tmp_path)
    for run_id, expected in facts["export"].items():
        assert {key: rows[run_id][key] for key in expected} == expected


def test_files_logs_and_code_have_the_same_content(workspace: Workspace, old_home: OldHome, facts: Facts) -> None:
    runs = all_runs(workspace)
    assert {run_id: file_digests(runs[run_id]) for run_id in facts["files"]} == facts["files"]
    assert code_digests(old_home.run("completed")) == facts["code"]


def test_old_models_are_in_the_registry_of_mlflow(workspace: Workspace, facts: Facts) -> None:
    versions = workspace.connection.get("/api/2.0/mlflow/model-versions/search")["model_versions"]
    assert {f"{version['name']}:{version['version']}" for version in versions} >= set(facts["models"])
    names = workspace.connection.get("/api/2.0/mlflow/registered-models/search")["registered_models"]
    assert {model["name"] for model in names} >= {id.partition(":")[0] for id in facts["models"]}


def test_the_command_line_reads_old_runs(old_home: OldHome, facts: Facts) -> None:
    completed, failed = facts["roles"]["completed"], facts["roles"]["failed"]
    statuses = {run["run_id"]: run["status"] for run in json.loads(command("runs", "--all", "--json"))}
    assert statuses.items() >= {run_id: run["status"] for run_id, run in facts["runs"].items()}.items()
    assert command("logs", completed) == "learning rate 0.3\n"
    assert command("logs", failed).endswith("ValueError: the learning rate must be positive, got -1.0\n")
    assert json.loads(command("show", failed, "--json"))["end"]["reason"] == "script failed"
    assert "ValueError: the learning rate must be positive" in command("show", failed)
    for name in ("metrics", "files", "explain"):
        assert command(name, completed)
    assert completed in command("lineage", "digits:1")


def test_the_sweep_keeps_its_ranking_and_its_values(old_home: OldHome, facts: Facts) -> None:
    sweep = old_home.run("sweep")
    assert isinstance(sweep, HyperDriveRun)
    best = sweep.get_best_run_by_primary_metric()
    assert best is not None
    assert best.id == facts["sweep"]["best"]
    assert sweep.get_hyperparameters() == facts["sweep"]["hyperparameters"]
    assert sweep.get_children_sorted_by_primary_metric() == facts["sweep"]["sorted"]


def test_models_keep_their_versions_files_stage_and_alias(workspace: Workspace, facts: Facts) -> None:
    models = {model.id: model_facts(model) for model in Model.list(workspace)}
    assert {model_id: models[model_id] for model_id in facts["models"]} == facts["models"]
    assert Model(workspace, "digits", version="champion").version == 1


def test_datasets_and_their_datastore_can_be_read(workspace: Workspace, facts: Facts, tmp_path: Path) -> None:
    assert {name: dataset_facts(workspace, name) for name in facts["datasets"]} == facts["datasets"]
    labels: Any = Dataset.get_by_name(workspace, "labels")
    assert labels.to_pandas_dataframe()["label"].tolist() == [1, 2]
    shelf = Datastore.get(workspace, "shelf")
    shelf.download(str(tmp_path), prefix="numbers", show_progress=False)
    assert (tmp_path / "numbers" / "1.txt").read_text() == "one\n"


def test_environments_and_compute_targets_stay_registered(workspace: Workspace, facts: Facts) -> None:
    preset = Environment.get(workspace, "preset")
    assert (preset.version, preset.environment_variables) == ("1", facts["environment"])
    assert preset.python.user_managed_dependencies
    assert ComputeTarget(workspace, "cluster").get_status().serialize()["scaleSettings"]["maxNodeCount"] == 2


def test_the_service_starts_again_answers_with_its_old_key_and_takes_an_update(
    workspace: Workspace, facts: Facts
) -> None:
    expected = facts["service"]
    request = json.dumps(expected["request"])
    service = Webservice(workspace, expected["name"])
    eventually(lambda: is_healthy(service), "the service is healthy")
    assert list(service.get_keys()) == expected["keys"]
    assert {str(version): share for version, share in service.versions.items()} == expected["versions"]
    assert (service.tags, service.description) == (expected["tags"], expected["description"])
    assert service.run(request) == expected["answers"]["digits:2"]
    service.update(models=[Model(workspace, id="digits:1")])
    service.wait_for_deployment()
    assert service.run(request) == expected["answers"]["digits:1"]
    assert list(service.get_keys()) == expected["keys"]


def test_unfinished_runs_are_brought_to_their_end(workspace: Workspace, facts: Facts) -> None:
    """The old yard stopped while one run held the only node and the others were queued; its agent was killed then."""
    runs = all_runs(workspace)
    first_run, queued_run, sweep = (runs[facts["unfinished"][name]] for name in ("running", "queued", "sweep"))
    details = first_run.wait_for_completion(raise_on_error=False)
    assert (details["status"], details["error"]["error"]["reason"]) == ("Failed", "agent lost")
    assert queued_run.wait_for_completion()["status"] == "Completed"
    assert queued_run.get_metrics()["loss"][0] == 0.5
    assert sweep.wait_for_completion()["status"] == "Completed"
    assert isinstance(sweep, HyperDriveRun)
    values = [values for _, values in sorted(sweep.get_hyperparameters().items())]
    assert values == list(facts["sweep"]["hyperparameters"].values())


@pytest.mark.parametrize("role", ["completed", "two nodes", "dataset"])
def test_an_old_run_can_be_run_again(workspace: Workspace, old_home: OldHome, facts: Facts, role: str) -> None:
    old_run = old_home.run(role)
    run_id = command("rerun", "--detach", old_run.id).strip()
    new_run = all_runs(workspace)[run_id]
    assert new_run.wait_for_completion()["status"] == "Completed"
    assert run_facts(new_run)["metrics"] == facts["runs"][old_run.id]["metrics"]
    assert new_run.number > max(run["number"] for run in facts["runs"].values())


def test_a_new_run_uses_the_old_dataset_environment_cluster_and_model(
    workspace: Workspace, facts: Facts, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "import os, sys\n"
        "from runyard import Model, Run\n"
        "run = Run.get_context()\n"
        "run.log('files', len(os.listdir(sys.argv[1])))\n"
        "run.log('threads', int(os.environ['OMP_NUM_THREADS']))\n"
        "with open(Model.get_model_path('digits', version=1)) as file:\n"
        "    print(file.read())\n"
    )
    numbers: Any = Dataset.get_by_name(workspace, "numbers")
    config = ScriptRunConfig(
        tmp_path,
        script="train.py",
        arguments=[numbers.as_named_input("numbers").as_mount()],
        compute_target="cluster",
        environment=Environment.get(workspace, "preset"),
    )
    run = Experiment(workspace, "digits").submit(config)
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"files": 2, "threads": 1}
    assert command("logs", run.id) == '{"weights": [2, 10]}\n'
    run.upload_file("outputs/model.txt", str(tmp_path / "train.py"))
    assert run.register_model(model_name="digits", model_path="outputs/model.txt").version == 3


def is_healthy(service: Webservice) -> bool:
    service.update_deployment_state()
    return service.state == "Healthy"


def command(*arguments: str) -> str:
    process = subprocess.run([sys.executable, "-m", "runyard", *arguments], capture_output=True, text=True, check=True)
    return process.stdout
