"""The model registry of the stock MLflow client: the same models as those of the SDK."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException, RestException

from runyard import Model, Workspace
from runyard.cli.model_text import facts
from runyard.errors import WebserviceException
from support import eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*stages:FutureWarning", "ignore:.*is deprecated:FutureWarning")


@pytest.fixture
def name() -> str:
    return f"net-{os.urandom(4).hex()}"


@pytest.fixture
def source(client: MlflowClient, experiment_id: str) -> str:
    """The URI of a small model of a run."""
    with mlflow.start_run() as run:
        mlflow.log_text("flavors:\n  sklearn:\n    sklearn_version: 1.5.0\nrun_id: a\n", "net/MLmodel")
        mlflow.log_text("weights", "net/data/model.pkl")
        mlflow.log_metric("accuracy", 0.9)
    return f"runs:/{run.info.run_id}/net"


@pytest.fixture
def register(client: MlflowClient, name: str, source: str) -> Callable[..., ModelVersion]:
    client.create_registered_model(name)
    return lambda **arguments: client.create_model_version(name, source, await_creation_for=None, **arguments)


@pytest.mark.filterwarnings("ignore")  # of MLflow's own type hints, when mlflow.pyfunc is imported
def test_a_registered_model_is_served_by_mlflow(
    client: MlflowClient, experiment_id: str, tracking: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "doubler.py").write_text(
        "import mlflow\n"
        "class Doubler(mlflow.pyfunc.PythonModel):\n"
        "    def predict(self, context, model_input):\n"
        "        return [2 * value for value in model_input]\n"
        "mlflow.models.set_model(Doubler())\n"
    )
    with mlflow.start_run():
        mlflow.pyfunc.log_model(
            name="doubler",
            python_model=str(tmp_path / "doubler.py"),
            registered_model_name=name,
            pip_requirements=[],
        )
    client.set_registered_model_alias(name, "champion", "1")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    programs = Path(sys.executable).parent
    (tmp_path / "temporary").mkdir()  # MLflow downloads the model into a temporary folder, which it does not delete
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": tracking,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "temporary"),
    }
    command = [programs / "mlflow", "models", "serve", "-m", f"models:/{name}@champion", "--env-manager", "local"]
    with open(tmp_path / "serve.log", "w") as log:
        server = subprocess.Popen(
            [*map(str, command), "-p", str(port)], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:

        def is_ready() -> bool:
            assert server.poll() is None, (tmp_path / "serve.log").read_text()
            try:
                return requests.get(f"http://127.0.0.1:{port}/ping", timeout=20).status_code == 200
            except requests.ConnectionError:
                return False

        eventually(is_ready, "MLflow serves the model", within_s=180)
        response = requests.post(f"http://127.0.0.1:{port}/invocations", json={"inputs": [1, 2]}, timeout=60)
        assert response.json() == {"predictions": [2, 4]}
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # `mlflow models serve` and its web server
        server.wait()


@pytest.mark.filterwarnings("ignore")  # of MLflow's own type hints, when mlflow.pyfunc is imported
def test_a_logged_model_is_registered_and_loaded_by_version_alias_and_stage(
    client: MlflowClient, experiment_id: str, workspace: Workspace, name: str, tmp_path: Path
) -> None:
    class Doubler(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        def predict(self, context: Any, model_input: list[int]) -> list[int]:
            return [2 * value for value in model_input]

    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 0.25)
        mlflow.pyfunc.log_model(name="doubler", python_model=Doubler(), registered_model_name=name, pip_requirements=[])
    version = client.get_model_version(name, "1")
    assert (version.run_id, version.status, version.current_stage) == (run.info.run_id, "READY", "None")
    client.set_registered_model_alias(name, "champion", "1")
    client.transition_model_version_stage(name, "1", "production")
    for reference in ("/1", "@champion", "/Production", "/latest"):
        folder = tmp_path / reference[1:]
        folder.mkdir()
        assert mlflow.pyfunc.load_model(f"models:/{name}{reference}", dst_path=str(folder)).predict([1, 2]) == [2, 4]
    downloaded = mlflow.artifacts.download_artifacts(f"models:/{name}@champion", dst_path=str(tmp_path / "downloaded"))
    assert Path(downloaded, "MLmodel").is_file()

    model = Model(workspace, name)
    assert (model.stage, model.aliases, model.run_id, model.metrics) == (
        "approved",
        ["champion"],
        run.info.run_id,
        {"loss": 0.25},
    )
    assert "model/MLmodel" in model.files()
    assert mlflow.pyfunc.load_model(model.download(str(tmp_path / "sdk"))).predict([3]) == [6]
    client.delete_run(run.info.run_id)  # a version has its own files
    (tmp_path / "again").mkdir()
    assert mlflow.pyfunc.load_model(f"models:/{name}/1", dst_path=str(tmp_path / "again")).predict([1]) == [2]


def test_models_of_the_sdk_have_their_files_and_labels_in_mlflow(
    client: MlflowClient, workspace: Workspace, name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    (folder / "data").mkdir(parents=True)
    (folder / "MLmodel").write_text("flavors: {}\n")
    (folder / "data" / "w.bin").write_bytes(b"\0\1")
    (tmp_path / "weights.json").write_text("{}")
    Model.register(workspace, str(tmp_path / "weights.json"), name, tags={"acc": "0.9"}, description="first")
    second = Model.register(workspace, str(folder), name)
    second.set_alias("champion")
    second.set_stage("rejected")
    first, rejected = client.get_model_version(name, "1"), client.get_model_version_by_alias(name, "champion")
    assert (first.tags, first.description, first.current_stage) == ({"acc": "0.9"}, "first", "None")
    assert (rejected.version, rejected.aliases, rejected.current_stage) == ("2", ["champion"], "Archived")
    files = Path(mlflow.artifacts.download_artifacts(f"models:/{name}/1", dst_path=str(tmp_path / "one")))
    assert (files / "weights.json").read_text() == "{}"
    files = Path(mlflow.artifacts.download_artifacts(f"models:/{name}@champion", dst_path=str(tmp_path / "two")))
    assert (files / "data" / "w.bin").read_bytes() == b"\0\1"
    assert client.get_registered_model(name).aliases == {"champion": "2"}

    client.set_model_version_tag(name, "2", "team", "vision")
    client.delete_model_version_tag(name, "1", "acc")
    client.update_model_version(name, "2", "second")
    assert Model(workspace, name, version=2).tags == {"team": "vision"}
    assert Model(workspace, name, version=1).tags == {}
    assert Model(workspace, name).description == "second"
    client.delete_registered_model_alias(name, "champion")
    assert Model(workspace, name).aliases == []


def test_a_name_with_other_characters_has_another_name_in_the_yard(
    client: MlflowClient, workspace: Workspace, source: str
) -> None:
    title = f"Größe & Gewicht ({os.urandom(3).hex()})"
    version = mlflow.register_model(source, title, tags={"a": 1})
    assert (version.name, version.version, version.tags) == (title, "1", {"a": "1"})
    assert [model.name for model in client.search_registered_models(f"name = '{title}'")] == [title]
    yard_name = next(model.name for model in Model.list(workspace, run_id=version.run_id))
    assert yard_name.startswith("Gr-e-Gewicht-")
    for model in (Model(workspace, yard_name), Model(workspace, title), Model(workspace, id=f"{title}:1")):
        assert (model.name, model.files()) == (yard_name, ["net/MLmodel", "net/data/model.pkl"])
    assert workspace.connection.get(f"/api/models/{title}")["title"] == title
    Model(workspace, title).set_alias("champion")
    assert client.get_model_version_by_alias(title, "champion").version == "1"
    shown = workspace.connection.get(f"/api/models/{yard_name}/versions/champion")
    assert ("in MLflow", title) in facts(shown)
    assert client.get_model_version_download_uri(title, "1") == f"mlflow-artifacts:/models/{yard_name}/1/net"


def test_renaming_moves_versions_files_aliases_and_history(
    client: MlflowClient, workspace: Workspace, name: str, register: Callable[..., ModelVersion], tmp_path: Path
) -> None:
    register()
    client.set_registered_model_alias(name, "champion", "1")
    copy = client.copy_model_version(f"models:/{name}/1", f"{name}-copy")
    assert (copy.version, copy.source) == ("1", f"models:/{name}/1")
    client.rename_registered_model(name, f"{name}.v2")
    renamed = client.get_registered_model(f"{name}.v2")
    assert (renamed.name, renamed.aliases) == (f"{name}.v2", {"champion": "1"})
    assert client.get_model_version_by_alias(f"{name}.v2", "champion").version == "1"
    model = Model(workspace, f"{name}.v2")
    assert model.files() == ["net/MLmodel", "net/data/model.pkl"]
    assert [event["what"] for event in model.history()] == ["registered", "alias"]
    assert Model(workspace, f"{name}-copy").parent_id == f"{name}.v2:1"
    assert Path(model.download(str(tmp_path / "files")), "data", "model.pkl").read_text() == "weights"
    with pytest.raises(RestException, match="not found"):
        client.get_registered_model(name)
    with pytest.raises(WebserviceException, match="no model named"):
        Model(workspace, name)
    with pytest.raises(RestException, match="already exists"):
        client.rename_registered_model(f"{name}.v2", f"{name}-copy")


def test_a_registered_model_is_created_described_tagged_and_deleted(
    client: MlflowClient, workspace: Workspace, name: str, source: str
) -> None:
    created = client.create_registered_model(name, {"team": "vision"}, "first")
    assert (created.tags, created.description, created.latest_versions) == ({"team": "vision"}, "first", [])
    with pytest.raises(RestException, match="already exists") as caught:
        client.create_registered_model(name)
    assert caught.value.error_code == "RESOURCE_ALREADY_EXISTS"
    client.update_registered_model(name, "second")
    client.set_registered_model_tag(name, "stage", "test")
    client.delete_registered_model_tag(name, "team")
    client.delete_registered_model_tag(name, "team")  # as in MLflow, no error
    model = client.get_registered_model(name)
    assert (model.description, model.tags) == ("second", {"stage": "test"})
    assert model.last_updated_timestamp >= model.creation_timestamp
    mlflow.register_model(source, name)
    client.set_registered_model_alias(name, "champion", "1")
    client.delete_registered_model(name)
    with pytest.raises(RestException) as missing:
        client.get_registered_model(name)
    assert missing.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    assert Model.list(workspace, name) == []
    again = mlflow.register_model(source, name)
    assert again.version == "2", "numbers of deleted versions are not used again"
    assert client.get_registered_model(name).tags == {}


def test_searches_filter_order_and_page(client: MlflowClient, name: str, source: str) -> None:
    for number in range(5):
        client.create_registered_model(f"{name}-{number}", {"even": str(number % 2 == 0).lower()})
    for _ in range(3):
        client.create_model_version(f"{name}-0", source, await_creation_for=None, tags={"round": "a"})
    client.create_model_version(f"{name}-1", source, await_creation_for=None)

    def models(filter_string: str, **arguments: Any) -> list[str]:
        return [model.name[len(name) :] for model in client.search_registered_models(filter_string, **arguments)]

    assert models(f"name LIKE '{name}%' AND tags.even = 'true'") == ["-0", "-2", "-4"]
    assert models(f"name ILIKE '{name.upper()}-1'") == ["-1"]
    assert models(f"name LIKE '{name}%'", order_by=["name DESC"], max_results=2) == ["-4", "-3"]
    page = client.search_registered_models(f"name LIKE '{name}%'", max_results=2)
    page = client.search_registered_models(f"name LIKE '{name}%'", max_results=2, page_token=page.token)
    assert [model.name[len(name) :] for model in page] == ["-2", "-3"]
    assert models(f"name LIKE '{name}%'", order_by=["creation_timestamp DESC"])[0] == "-4"

    def versions(filter_string: str, **arguments: Any) -> list[str]:
        return [version.version for version in client.search_model_versions(filter_string, **arguments)]

    run_id = source.split("/")[1]
    assert versions(f"name = '{name}-0'", order_by=["version_number ASC"]) == ["1", "2", "3"]
    assert versions(f"name = '{name}-0'", order_by=["version_number DESC"], max_results=2) == ["3", "2"]
    assert len(versions(f"run_id = '{run_id}'")) == 4
    assert len(versions(f"run_id IN ('{run_id}', 'other') AND tags.round = 'a'")) == 3
    assert len(versions(f"source_path = '{source}'")) == 4
    for bad in ("metrics.loss > 1", "name > 'a'", "color = 'red'", "name = 'a' OR name = 'b'"):
        with pytest.raises(RestException) as caught:
            client.search_registered_models(bad)
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE", bad
    with pytest.raises(RestException, match="max_results"):
        client.search_registered_models(max_results=1001)
    with pytest.raises(RestException, match="ordered by"):
        client.search_model_versions(order_by=["tags.round"])


def test_a_version_takes_the_place_of_the_others_at_its_stage(
    client: MlflowClient, workspace: Workspace, name: str, register: Callable[..., ModelVersion]
) -> None:
    for _ in range(3):
        register()
    client.transition_model_version_stage(name, "1", "Production")
    client.transition_model_version_stage(name, "2", "Production", archive_existing_versions=True)
    assert [Model(workspace, name, version=number).stage for number in (1, 2, 3)] == ["archived", "approved", "none"]
    latest = {version.current_stage: version.version for version in client.get_latest_versions(name)}
    assert latest == {"Archived": "1", "Production": "2", "None": "3"}
    assert [version.version for version in client.get_latest_versions(name, ["production"])] == ["2"]
    with pytest.raises(RestException, match="not an active stage"):
        client.transition_model_version_stage(name, "3", "None", archive_existing_versions=True)
    with pytest.raises(RestException, match="Invalid Model Version stage"):
        client.transition_model_version_stage(name, "3", "Retired")


def test_deleting_a_version_removes_its_aliases_and_keeps_the_model(
    client: MlflowClient, workspace: Workspace, name: str, register: Callable[..., ModelVersion]
) -> None:
    register()
    client.set_registered_model_alias(name, "champion", "1")
    client.delete_model_version(name, "1")
    model = client.get_registered_model(name)
    assert (model.latest_versions, model.aliases) == ([], {})
    assert register().version == "2"
    Model(workspace, name).delete()  # the SDK knows no names without versions
    with pytest.raises(RestException, match="not found"):
        client.get_registered_model(name)


def test_simultaneous_clients_make_no_two_of_anything(client: MlflowClient, name: str, source: str) -> None:
    barrier = threading.Barrier(8)

    def create(_: int) -> str:
        barrier.wait()
        try:
            client.create_registered_model(name)
        except MlflowException as error:
            return str(error.error_code)
        return "created"

    def add_version(number: int) -> str:
        barrier.wait()
        version = client.create_model_version(name, source, await_creation_for=None)
        client.set_registered_model_alias(name, "champion", version.version)
        client.set_model_version_tag(name, "1", f"client-{number}", "here")
        client.set_registered_model_tag(name, f"client-{number}", "here")
        return str(version.version)

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(create, range(8))) == [*["RESOURCE_ALREADY_EXISTS"] * 7, "created"]
        assert sorted(map(int, pool.map(add_version, range(8)))) == list(range(1, 9))
    model = client.get_registered_model(name)
    assert list(model.aliases) == ["champion"]
    assert len(model.tags) == 8
    assert len(client.get_model_version(name, "1").tags) == 8


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("s3://bucket/model", "INVALID_PARAMETER_VALUE"),
        ("file:///etc", "INVALID_PARAMETER_VALUE"),
        ("/etc/passwd", "INVALID_PARAMETER_VALUE"),
        ("mlflow-artifacts://elsewhere/run/net", "INVALID_PARAMETER_VALUE"),
        ("mlflow-artifacts:/model-upload:abc/net", "RESOURCE_DOES_NOT_EXIST"),
        ("runs:/no-such-run/net", "RESOURCE_DOES_NOT_EXIST"),
        ("models:/m-none", "RESOURCE_DOES_NOT_EXIST"),
        ("models:/none/1", "RESOURCE_DOES_NOT_EXIST"),
        ("{run}/nothing", "RESOURCE_DOES_NOT_EXIST"),
        ("{run}/../../etc", "INVALID_PARAMETER_VALUE"),
        ("{run}", "INVALID_PARAMETER_VALUE"),
    ],
)
def test_files_outside_the_yard_cannot_be_registered(
    client: MlflowClient, name: str, source: str, uri: str, code: str
) -> None:
    client.create_registered_model(name)
    with pytest.raises(RestException) as caught:
        client.create_model_version(name, uri.format(run=source.rpartition("/")[0]))
    assert caught.value.error_code == code
    assert client.search_model_versions(f"name = '{name}'") == []


def test_invalid_names_and_unknown_models_are_refused(
    client: MlflowClient, name: str, register: Callable[..., ModelVersion], source: str
) -> None:
    register()
    for bad in ("a/b", "a:b", " ", "..", "line\nbreak", "x" * 257):
        with pytest.raises(MlflowException) as caught:
            client.create_registered_model(bad)
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE", bad
    for bad in ("latest", "v1", "1", "a b", "a/b", "x" * 256):
        with pytest.raises(MlflowException) as caught:
            client.set_registered_model_alias(name, bad, "1")
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE", bad
    with pytest.raises(RestException, match="not found") as missing:
        client.create_model_version(f"{name}-none", source)
    assert missing.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    with pytest.raises(RestException, match=f"name={name}, version=7"):
        client.get_model_version(name, "7")
    with pytest.raises(RestException, match="alias none not found"):
        client.get_model_version_by_alias(name, "none")
    with pytest.raises(RestException, match="run_id"):
        client.create_model_version(name, source, run_id="another")
    with pytest.raises(RestException, match="does not support MLflow's prompt registry"):
        client._get_registry_client().create_registered_model(f"{name}-p", {"mlflow.prompt.is_prompt": "true"})


def test_files_of_a_version_cannot_be_changed_through_the_artifact_api(
    client: MlflowClient, workspace: Workspace, tracking: str, name: str, register: Callable[..., ModelVersion]
) -> None:
    register()
    headers = {"Authorization": f"Bearer {os.environ['MLFLOW_TRACKING_TOKEN']}"}
    for owner in (f"models/{name}/1", f"model:{name}:1"):
        url = f"{tracking}/api/2.0/mlflow-artifacts/artifacts/{owner}/net/MLmodel"
        for response in (
            requests.put(url, data=b"x", headers=headers, timeout=20),
            requests.delete(url, headers=headers, timeout=20),
        ):
            assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert Model(workspace, name).files() == ["net/MLmodel", "net/data/model.pkl"]
    assert Model(workspace, name).model_framework == "ScikitLearn"
    assert Model(workspace, name).model_framework_version == "1.5.0"
