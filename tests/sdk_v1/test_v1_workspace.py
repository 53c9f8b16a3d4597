"""Workspaces of the SDK v1: opened_workspace by their files, created, printed, and asked for what only a cloud has."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from runyard import AmlCompute, Experiment, Workspace
from runyard.errors import UserErrorException

OLD = {"subscription_id": "1234-56", "resource_group": "aml-rg", "workspace_name": "team-ws"}


def put(folder: Path, name: str, content: Any = OLD) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_an_old_configuration_is_found_from_a_folder_below_it(tmp_path: Path, monkeypatch, home: Path) -> None:
    """B1.1: .azureml/config.json precedes aml_config/config.json and config.json; then the parent folder."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for path, name in (
        ("config.json", "bare"),
        ("aml_config/project.json", "older-project"),
        ("aml_config/config.json", "older"),
        (".azureml/project.json", "project"),
        (".azureml/config.json", "newer"),
    ):
        put(tmp_path, path, {**OLD, "workspace_name": name})
        assert Workspace.from_config().name == name
    put(tmp_path / "a", "config.json", {**OLD, "workspace_name": "nearer"})
    opened_workspace = Workspace.from_config()
    assert (opened_workspace.name, opened_workspace.subscription_id, opened_workspace.resource_group) == (
        "nearer",
        "1234-56",
        "aml-rg",
    )
    assert opened_workspace.home == home


def test_a_scope_names_a_workspace(tmp_path: Path, home: Path) -> None:
    """B1.1: one Scope in place of the three keys."""
    scope = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/scoped"
    opened_workspace = Workspace.from_config(put(tmp_path, "config.json", {"Scope": scope}))
    assert (opened_workspace.subscription_id, opened_workspace.resource_group, opened_workspace.name) == (
        "1",
        "rg",
        "scoped",
    )


@pytest.mark.parametrize(
    ("content", "says"), [({"workspace_name": "x"}, "lacks subscription_id, resource_group"), ("{", "cannot be read")]
)
def test_an_incomplete_configuration_is_refused(tmp_path: Path, content: Any, says: str, home: Path) -> None:
    """B1.1: keys that are missing, or an invalid file, are a UserErrorException."""
    put(tmp_path, ".azureml/config.json", content)
    with pytest.raises(UserErrorException, match=says):
        Workspace.from_config(tmp_path)


def test_a_missing_configuration_is_an_error_only_for_an_explicit_path(tmp_path: Path, monkeypatch, home: Path) -> None:
    """B1.1: a folder that was given and has none is a UserErrorException; else it is the yard of this machine."""
    with pytest.raises(UserErrorException, match=r"no config\.json at or above"):
        Workspace.from_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert Workspace.from_config().name == "runyard"


def test_attributes_that_notebooks_print_are_text(workspace: Workspace) -> None:
    """B1.2: name, location, subscription and group can be joined to text."""
    here = Workspace.from_config()
    assert here.name + here.location + here.subscription_id + here.resource_group


def test_collections_are_dicts_that_can_be_called(workspace: Workspace, experiment: Experiment) -> None:
    """B1.3: both eras read them: as properties, and as the methods that they were first."""
    experiment.start_logging(snapshot_directory=None).complete()
    for name in ("compute_targets", "experiments", "environments", "datastores", "datasets", "models", "webservices"):
        collection = getattr(workspace, name)
        assert collection() == collection
        assert dict(collection.items()).keys() == collection.keys()
    assert workspace.images() == workspace.images
    assert experiment.name in workspace.experiments
    assert workspace.compute_targets["local"].name == "local"


def test_the_configuration_notebook_runs(tmp_path: Path, monkeypatch, home: Path) -> None:
    """B1.5: a workspace is created or opened, its configuration written, and read by the next notebook."""
    monkeypatch.chdir(tmp_path)
    created = Workspace.create(
        name="team-ws",
        subscription_id="1234-56",
        resource_group="aml-rg",
        location="eastus2",
        create_resource_group=True,
        exist_ok=True,
    )
    assert (created.location, created.get_details()["name"]) == ("eastus2", "team-ws")
    created.write_config()
    assert json.loads((tmp_path / ".azureml" / "config.json").read_text()) == OLD
    assert Workspace.from_config().name == "team-ws"
    (tmp_path / "older" / "aml_config").mkdir(parents=True)
    opened = Workspace(subscription_id="1234-56", resource_group="aml-rg", workspace_name="team-ws")
    opened.write_config(path=tmp_path / "older")
    assert (tmp_path / "older" / "aml_config" / "config.json").is_file()
    assert Workspace.get("team-ws", subscription_id="1234-56", resource_group="aml-rg").name == "team-ws"
    assert [workspace.name for workspace in Workspace.list("1234-56")["team-ws"]] == ["team-ws"]


def test_the_tracking_uri_of_mlflow_is_returned(workspace: Workspace, monkeypatch) -> None:
    """B1.6: azureml.mlflow can be imported."""
    import azureml.mlflow  # noqa: F401

    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")
    assert workspace.get_mlflow_tracking_uri().startswith("http://127.0.0.1:")


def test_default_clusters_of_a_workspace_are_created(home: Path) -> None:
    two = Workspace.DEFAULT_CPU_CLUSTER_CONFIGURATION
    created = Workspace.create("with-clusters", default_cpu_compute_target=two)
    cluster = created.get_default_compute_target("CPU")
    try:
        assert (cluster.name, type(cluster)) == ("cpu-cluster", AmlCompute)
        assert created.get_default_compute_target("GPU").name == "local"
    finally:
        cluster.delete()


def test_cloud_arguments_are_logged_once(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runyard"):
        for _ in range(2):
            Workspace.create(
                "networked", container_registry="/subscriptions/1/registries/r", private_endpoint_config="x"
            )
    messages = [record.getMessage() for record in caplog.records]
    assert len([line for line in messages if "Workspace.create(container_registry=" in line]) == 1
    assert len([line for line in messages if "private_endpoint_config" in line and "has no effect here" in line]) == 1


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda ws: ws.delete(), "runyard yard stop"),
        (lambda ws: ws.get_default_keyvault().get_secret("hf-token"), "runyard secrets set hf-token"),
        (lambda ws: ws.set_connection("feed", "PythonFeed", "https://x", "PAT", "secret"), "pip configuration"),
        (lambda ws: ws.get_connection("feed"), "has none"),
        (lambda ws: ws.get_default_compute_target("TPU"), ""),
    ],
)
def test_cloud_members_raise_an_error_with_a_hint(workspace: Workspace, ask: Any, hint: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        ask(workspace)
    assert hint in caught.value.hint


def test_an_experiment_has_labels_and_can_be_archived(workspace: Workspace) -> None:
    experiment, other = Experiment(workspace, "labelled"), Experiment(workspace, "unlabelled")
    experiment.set_tags({"team": "vision", "n": 3})
    experiment.tag("alone")
    other.tag("team", "speech")
    assert Experiment(workspace, "labelled").tags == {"team": "vision", "n": "3", "alone": None}
    experiment.remove_tags(["n"])
    assert [e.name for e in Experiment.list(workspace, tags={"team": "vision"})] == ["labelled"]
    experiment.archive()
    assert "labelled" not in [e.name for e in Experiment.list(workspace)]
    assert [e.name for e in Experiment.list(workspace, view_type="ArchivedOnly")] == ["labelled"]
    assert experiment.archived_time
    experiment.reactivate()
    assert experiment.archived_time is None
    with pytest.raises(UserErrorException, match="view_type must be"):
        Experiment.list(workspace, view_type="Some")


def test_deleting_an_experiment_archives_it(workspace: Workspace) -> None:
    Experiment(workspace, "unwanted").tag("team", "vision")
    Experiment.delete(workspace, "unwanted")
    assert "unwanted" not in [e.name for e in Experiment.list(workspace)]
    with pytest.raises(UserErrorException, match="no experiment 'no-such-id' in workspace"):
        Experiment.delete(workspace, "no-such-id")
