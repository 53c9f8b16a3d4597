"""An argument without effect is logged once, stored with the run, and shown by `runyard explain`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_support import CommandLine
from runyard import AmlCompute, ComputeTarget, Environment, Estimator, Experiment, ScriptRunConfig, Workspace
from runyard.sdk.azureml import no_effect
from runyard.sdk.environment.sections import ContainerRegistry
from runyard.sdk.training.run_configuration import RunConfiguration
from support import run_view, with_this_python


def test_a_note_is_logged_once_and_never_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runyard"):
        for _ in range(3):
            config = RunConfiguration()
            no_effect.warn_ignored(config, "colour", "blue", "runs have none")
            no_effect.warn_ignored(config, "admin_password", "hunter2", "nobody signs in")
            no_effect.warn_ignored(config, "absent", None, "it was not given")
    assert [record.getMessage() for record in caplog.records] == [
        "RunConfiguration(colour='blue') has no effect here: runs have none",
        "RunConfiguration(admin_password=…) has no effect here: nobody signs in",
    ]
    assert [note.argument for note in no_effect.notes_of(config, config)] == ["colour", "admin_password"]


def test_a_registry_is_stored_without_credentials(project: Callable[..., Path]) -> None:
    registry = ContainerRegistry()
    registry.address, registry.username, registry.password = "registry.example.org", "me", "hunter2"
    estimator = Estimator(
        project(train="print(1)"),
        compute_target="local",
        entry_script="train.py",
        custom_docker_image="team/train:1",
        image_registry_details=registry,
    )
    spec = estimator.to_spec()
    assert spec.environment.container is not None
    assert spec.environment.container.registry == "registry.example.org"
    notes = {note.argument: note.value for note in spec.no_effect}
    assert notes == {"base_image_registry.username": "'me'", "base_image_registry.password": "…"}


def test_ignored_environment_settings_are_noted(project: Callable[..., Path]) -> None:
    environment = Environment("served")
    environment.inferencing_stack_version = "latest"
    environment.spark.precache_packages = False
    environment.spark.repositories = ["https://mmlspark.azureedge.net/maven"]
    config = ScriptRunConfig(project(train="print(1)"), "train.py", environment=environment)
    notes = {(note.owner, note.argument) for note in config.to_spec().no_effect}
    assert notes == {
        ("Environment", "inferencing_stack_version"),
        ("SparkSection", "precache_packages"),
        ("SparkSection", "repositories"),
    }
    assert environment.inferencing_stack_version == "latest"
    plain = ScriptRunConfig(project(train="print(1)"), "train.py", environment=Environment("plain"))
    assert plain.to_spec().no_effect == ()


def test_explain_lists_ignored_arguments_of_run_workspace_and_target(
    home: Path, project: Callable[..., Path], tmp_path: Path
) -> None:
    workspace = Workspace.create("explained", key_vault="/subscriptions/1/vaults/v")
    configuration = AmlCompute.provisioning_configuration(
        vm_size="STANDARD_NC6", max_nodes=2, vm_priority="lowpriority"
    )
    cluster = ComputeTarget.create(workspace, "explained", configuration)
    estimator = Estimator(
        project(train="print('hello')"),
        compute_target=cluster,
        vm_size="STANDARD_D2",
        entry_script="train.py",
        user_managed=True,
    )
    run = Experiment(workspace, "explained").submit(estimator)
    run.wait_for_completion()
    stored = {(note["owner"], note["argument"]) for note in run_view(run)["spec"]["no_effect"]}
    assert {("Workspace.create", "key_vault"), ("Estimator", "vm_size")} <= stored
    cli = CommandLine(home, tmp_path)
    output = cli("explain", run.id).text
    assert "arguments without effect:" in output
    assert "Estimator(vm_size='STANDARD_D2')\n      compute_target selects the machine" in output
    assert "AmlCompute.provisioning_configuration(vm_priority='lowpriority')" in output
    assert "Workspace.create(key_vault=…)" in output
    assert "target       explained: AmlCompute, up to 2 nodes, vm_size STANDARD_NC6 (label only)" in output
    notes = json.loads(cli("explain", run.id, "--json").out)
    assert notes["run_id"] == run.id
    assert {note["argument"] for note in notes["no_effect"]} >= {"vm_size", "vm_priority", "key_vault"}
    cluster.delete()


def test_explain_reports_that_every_argument_is_used(
    home: Path, experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    run = experiment.submit(with_this_python(project(train="print(1)")))
    run.wait_for_completion()
    output = CommandLine(home, tmp_path)("explain", run.id).text
    assert "no effect    none: every argument was used" in output
    assert "target       local: the yard's machine" in output
