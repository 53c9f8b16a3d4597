"""Workspaces of the SDK v1: found by their files, made, printed, and asked for what only a cloud has."""

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
    """B1.1: .azureml/config.json wins over aml_config/config.json, that over a bare config.json; then one goes up."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for place, name in (
        ("config.json", "bare"),
        ("aml_config/project.json", "older-project"),
        ("aml_config/config.json", "older"),
        (".azureml/project.json", "project"),
        (".azureml/config.json", "newer"),
    ):
        put(tmp_path, place, {**OLD, "workspace_name": name})
        assert Workspace.from_config().name == name
    put(tmp_path / "a", "config.json", {**OLD, "workspace_name": "nearer"})
    found = Workspace.from_config()
    assert (found.name, found.subscription_id, found.resource_group) == ("nearer", "1234-56", "aml-rg")
    assert found.home == home


def test_an_address_of_the_cloud_names_a_workspace_too(tmp_path: Path, home: Path) -> None:
    """B1.1: one Scope in place of the three keys."""
    scope = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/scoped"
    found = Workspace.from_config(put(tmp_path, "config.json", {"Scope": scope}))
    assert (found.subscription_id, found.resource_group, found.name) == ("1", "rg", "scoped")


@pytest.mark.parametrize(
    ("content", "says"), [({"workspace_name": "x"}, "lacks subscription_id, resource_group"), ("{", "cannot be read")]
)
def test_a_configuration_that_says_too_little_is_refused(tmp_path: Path, content: Any, says: str, home: Path) -> None:
    """B1.1: keys that are missing, or a file that is none, are a UserErrorException."""
    put(tmp_path, ".azureml/config.json", content)
    with pytest.raises(UserErrorException, match=says):
        Workspace.from_config(tmp_path)


def test_no_configuration_is_an_error_only_where_one_was_named(tmp_path: Path, monkeypatch, home: Path) -> None:
    """B1.1: a folder that was given and has none is a UserErrorException; else it is the yard of this machine."""
    with pytest.raises(UserErrorException, match=r"no config\.json at or above"):
        Workspace.from_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert Workspace.from_config().name == "runyard"


def test_what_notebooks_print_is_text(workspace: Workspace) -> None:
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


def test_the_notebook_that_all_others_need(tmp_path: Path, monkeypatch, home: Path) -> None:
    """B1.5: a workspace is made or opened, its configuration written, and read by the next notebook."""
    monkeypatch.chdir(tmp_path)
    made = Workspace.create(
        name="team-ws",
        subscription_id="1234-56",
        resource_group="aml-rg",
        location="eastus2",
        create_resource_group=True,
        exist_ok=True,
    )
    assert (made.location, made.get_details()["name"]) == ("eastus2", "team-ws")
    made.write_config()
    assert json.loads((tmp_path / ".azureml" / "config.json").read_text()) == OLD
    assert Workspace.from_config().name == "team-ws"
    (tmp_path / "older" / "aml_config").mkdir(parents=True)
    opened = Workspace(subscription_id="1234-56", resource_group="aml-rg", workspace_name="team-ws")
    opened.write_config(path=tmp_path / "older")
    assert (tmp_path / "older" / "aml_config" / "config.json").is_file()
    assert Workspace.get("team-ws", subscription_id="1234-56", resource_group="aml-rg").name == "team-ws"
    assert [one.name for one in Workspace.list("1234-56")["team-ws"]] == ["team-ws"]


def test_the_address_for_mlflow_is_given_since_its_plugin_can_be_imported(workspace: Workspace, monkeypatch) -> None:
    """B1.6: azureml.mlflow is there."""
    import azureml.mlflow  # noqa: F401

    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")
    assert workspace.get_mlflow_tracking_uri().startswith("http://127.0.0.1:")


def test_clusters_that_a_workspace_is_made_with_are_there(home: Path) -> None:
    two = Workspace.DEFAULT_CPU_CLUSTER_CONFIGURATION
    made = Workspace.create("with-clusters", default_cpu_compute_target=two)
    cluster = made.get_default_compute_target("CPU")
    try:
        assert (cluster.name, type(cluster)) == ("cpu-cluster", AmlCompute)
        assert made.get_default_compute_target("GPU").name == "local"
    finally:
        cluster.delete()


def test_what_a_cloud_was_told_is_said_once(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runyard"):
        for _ in range(2):
            Workspace.create(
                "networked", container_registry="/subscriptions/1/registries/r", private_endpoint_config="x"
            )
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if "Workspace.create(container_registry=" in line]) == 1
    assert len([line for line in said if "private_endpoint_config" in line and "has no effect here" in line]) == 1


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda ws: ws.delete(), "runyard yard stop"),
        (lambda ws: ws.get_default_keyvault(), "environment_variables"),
        (lambda ws: ws.set_connection("feed", "PythonFeed", "https://x", "PAT", "secret"), "pip configuration"),
        (lambda ws: ws.get_connection("feed"), "has none"),
        (lambda ws: ws.get_default_compute_target("TPU"), ""),
    ],
)
def test_what_only_a_cloud_has_is_one_error_that_says_what_to_do(workspace: Workspace, ask: Any, hint: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        ask(workspace)
    assert hint in caught.value.hint


def test_labels_of_an_experiment_stay_and_an_archived_one_is_not_listed(workspace: Workspace) -> None:
    kept, other = Experiment(workspace, "labelled"), Experiment(workspace, "unlabelled")
    kept.set_tags({"team": "vision", "n": 3})
    kept.tag("alone")
    other.tag("team", "speech")
    assert Experiment(workspace, "labelled").tags == {"team": "vision", "n": "3", "alone": None}
    kept.remove_tags(["n"])
    assert [e.name for e in Experiment.list(workspace, tags={"team": "vision"})] == ["labelled"]
    kept.archive()
    assert "labelled" not in [e.name for e in Experiment.list(workspace)]
    assert [e.name for e in Experiment.list(workspace, view_type="ArchivedOnly")] == ["labelled"]
    assert kept.archived_time
    kept.reactivate()
    assert kept.archived_time is None
    with pytest.raises(UserErrorException, match="view_type must be"):
        Experiment.list(workspace, view_type="Some")


def test_deleting_an_experiment_takes_it_out_of_the_list_and_needs_one(workspace: Workspace) -> None:
    Experiment(workspace, "unwanted").tag("team", "vision")
    Experiment.delete(workspace, "unwanted")
    assert "unwanted" not in [e.name for e in Experiment.list(workspace)]
    with pytest.raises(UserErrorException, match="no experiment 'no-such-id' in workspace"):
        Experiment.delete(workspace, "no-such-id")
