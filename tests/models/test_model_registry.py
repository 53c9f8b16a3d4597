"""The model registry, through the SDK and a real yard."""

from __future__ import annotations

import getpass
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from runyard import Experiment, Model, Run, Workspace
from runyard.errors import (
    ModelInUse,
    ModelNotFoundException,
    ModelPathNotFoundException,
    UserErrorException,
    WebserviceException,
)
from support import with_this_python

Weights = Callable[[str], Path]


def test_a_file_registered_again_is_the_next_version(workspace: Workspace, name: str, weights: Weights) -> None:
    """B14.94."""
    first = Model.register(workspace, weights("first"), name, tags={"area": "digits", "epochs": 3}, description="a net")
    second = Model.register(workspace, weights("second"), name)
    assert (first.version, first.id, first.tags) == (1, f"{name}:1", {"area": "digits", "epochs": "3"})
    assert (second.version, second.description, first.description) == (2, None, "a net")
    assert first.url.startswith("aml://asset/")
    assert first.created_by == getpass.getuser()
    assert Model(workspace, name=name).version == 2
    assert Model(workspace, name=name, version=1).description == "a net"
    assert Model(workspace, id=f"{name}:1").version == 1
    assert Model(workspace, name, tags=["area"]).version == 1
    assert workspace.models[name].version == 2
    assert Model.deserialize(workspace, first.serialize()).id == first.id


def test_the_same_content_is_stored_once(workspace: Workspace, name: str, weights: Weights) -> None:
    models = [Model.register(workspace, weights("the same"), name) for _ in range(2)]
    urls = [model.get_sas_urls()["model.pt"] for model in models]
    assert urls[0] == urls[1]
    assert Path(unquote(urlparse(urls[0]).path)).read_text() == "the same"
    assert models[0].compare(models[1])["same_files"]


def test_a_folder_keeps_its_name_and_content(workspace: Workspace, name: str, tmp_path: Path) -> None:
    """B14.94."""
    folder = tmp_path / "outputs" / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "checkpoint").write_text("c")
    (folder / "variables" / "0.bin").write_bytes(bytes(3_000_000))
    model = Model.register(workspace, folder, name)
    assert model.files() == ["model/checkpoint", "model/variables/0.bin"]
    target = Path(model.download(target_dir=str(tmp_path / "there")))
    assert target == tmp_path / "there" / "model"
    assert (target / "variables" / "0.bin").read_bytes() == bytes(3_000_000)
    with pytest.raises(WebserviceException, match="exists already"):
        model.download(target_dir=str(tmp_path / "there"))
    model.download(target_dir=str(tmp_path / "there"), exist_ok=True)
    partial = Model.register(workspace, folder, name, child_paths=["checkpoint"])
    assert partial.files() == ["model/checkpoint"]


def test_a_missing_path_is_not_registered(workspace: Workspace, name: str, tmp_path: Path) -> None:
    with pytest.raises(WebserviceException, match=r"no file or folder 'nowhere\.pt'"):
        Model.register(workspace, "nowhere.pt", name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelPathNotFoundException, match="has no files"):
        Model.register(workspace, tmp_path / "empty", name)
    with pytest.raises(WebserviceException, match="no model named"):
        Model(workspace, name=name)


@pytest.mark.parametrize("wrong", ["", "-x", "a b", "x" * 256, "a/b", "ä", "a:b"])
def test_an_invalid_name_is_an_error(workspace: Workspace, weights: Weights, wrong: str) -> None:
    """B14.94."""
    with pytest.raises(WebserviceException, match="invalid model name"):
        Model.register(workspace, weights("x"), wrong)


def test_a_framework_version_needs_a_framework(workspace: Workspace, name: str, weights: Weights) -> None:
    with pytest.raises(WebserviceException, match="needs a model_framework"):
        Model.register(workspace, weights("x"), name, model_framework_version="1")
    model = Model.register(
        workspace, weights("x"), name, model_framework=Model.Framework.ONNX, model_framework_version="1.20"
    )
    assert (model.model_framework, model.model_framework_version) == ("Onnx", "1.20")
    assert [m.id for m in Model.list(workspace, name=name, model_framework="Onnx")] == [model.id]


def test_models_are_listed_by_name_label_run_and_newest(workspace: Workspace, name: str, weights: Weights) -> None:
    """B14.94."""
    Model.register(workspace, weights("1"), name, tags={"area": "digits", "kind": "cnn"})
    Model.register(workspace, weights("2"), name, tags={"area": "digits", "kind": "lstm"}, properties={"owner": "ada"})

    def versions(**filters: object) -> list[int]:
        return [model.version for model in Model.list(workspace, name=name, **filters)]  # type: ignore[arg-type]

    assert versions() == [2, 1]
    assert versions(latest=True) == [2]
    assert versions(tags=["area"]) == [2, 1]
    assert versions(tags=["area", ["kind", "cnn"]]) == [1]
    assert versions(tags=["colour"]) == []
    assert versions(properties=[["owner", "ada"]]) == [2]
    assert versions(run_id="nothing") == []
    with pytest.raises(UserErrorException, match="must be a list"):
        versions(tags={"area": "digits"})


def test_tags_can_be_changed_and_properties_cannot(workspace: Workspace, name: str, weights: Weights) -> None:
    model = Model.register(workspace, weights("x"), name, tags={"a": "1", "b": "2"}, properties={"p": "1"})
    model.add_tags({"a": "3", "c": 4})
    model.remove_tags(["b"])
    model.add_properties({"q": "2"})
    assert (model.tags, model.properties) == ({"a": "3", "c": "4"}, {"p": "1", "q": "2"})
    with pytest.raises(UserErrorException, match="cannot be changed"):
        model.add_properties({"p": "2"})
    model.update(tags={"only": "this"}, description="better")
    reloaded = Model(workspace, name)
    assert (reloaded.tags, reloaded.description) == ({"only": "this"}, "better")


def test_an_alias_refers_to_one_version_at_a_time(workspace: Workspace, name: str, weights: Weights) -> None:
    first, second = (Model.register(workspace, weights(text), name) for text in ("1", "2"))
    first.set_alias("champion")
    assert Model(workspace, name, version="champion").version == 1
    assert first.aliases == ["champion"]
    second.set_alias("champion")
    assert Model(workspace, id=f"{name}:champion").version == 2
    assert Model(workspace, name, version=1).aliases == []
    second.remove_alias("champion")
    with pytest.raises(WebserviceException, match="has no version 'champion'"):
        Model(workspace, name, version="champion")
    for wrong in ("latest", "3", "a b", "-x"):
        with pytest.raises(UserErrorException, match="invalid alias"):
            second.set_alias(wrong)


def test_a_stage_change_is_recorded_with_user_and_time(workspace: Workspace, name: str, weights: Weights) -> None:
    model = Model.register(workspace, weights("x"), name)
    assert model.stage == "none"
    model.set_stage("candidate")
    model.set_stage("approved", note="0.98 on the held-out set")
    history = [tuple(entry[key] for key in ("what", "before", "after", "note", "by")) for entry in model.history()]
    user = getpass.getuser()
    assert history == [
        ("registered", None, None, None, user),
        ("stage", "none", "candidate", None, user),
        ("stage", "candidate", "approved", "0.98 on the held-out set", user),
    ]
    assert all(entry["at"] > 0 for entry in model.history())
    with pytest.raises(UserErrorException, match="unknown stage 'perfect'") as caught:
        model.set_stage("perfect")
    assert "approved" in caught.value.hint


def test_the_number_of_a_deleted_version_is_never_reused(workspace: Workspace, name: str, weights: Weights) -> None:
    first, second = (Model.register(workspace, weights(text), name) for text in ("1", "2"))
    second.delete()
    assert Model(workspace, name).version == 1
    assert Model.register(workspace, weights("3"), name).version == 3
    with pytest.raises(WebserviceException, match="has no version '2'") as caught:
        Model(workspace, name, version=2)
    assert "1, 3" in caught.value.hint
    with pytest.raises(WebserviceException, match="has no version"):
        second.download()
    first.set_alias("champion")
    with pytest.raises(ModelInUse, match="has the alias 'champion'"):
        first.delete()
    first.remove_alias("champion")
    first.delete()


def test_deleted_content_is_removed_from_disk_unless_it_is_shared(
    workspace: Workspace, name: str, weights: Weights
) -> None:
    shared, unshared = weights(f"shared by {name}"), f"only {name}"
    remaining = Model.register(workspace, shared, f"{name}-keeps")
    deleted = Model.register(workspace, shared, name)
    path = Path(unquote(urlparse(deleted.get_sas_urls()["model.pt"]).path))
    deleted.delete()
    assert path.read_text() == f"shared by {name}"
    remaining.delete()
    assert not path.exists()
    other = Model.register(workspace, weights(unshared), name)
    path = Path(unquote(urlparse(other.get_sas_urls()["model.pt"]).path))
    other.delete()
    assert not path.exists()
    again = Model.register(workspace, weights(unshared), name)
    assert path.read_text() == unshared
    assert again.version == 3


def test_concurrent_registrations_get_distinct_versions(workspace: Workspace, name: str, weights: Weights) -> None:
    path = weights("the same for all")
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(lambda _: Model.register(workspace, path, name), range(8)))
    assert sorted(model.version for model in models) == list(range(1, 9))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Model.delete, models[:7]))
    assert [Path(model.download(str(path.parent / "there"))).read_text() for model in Model.list(workspace, name)] == [
        "the same for all"
    ]


def test_files_are_uploaded_to_a_remote_yard(
    workspace: Workspace, name: str, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.connection.get("/api/health")  # it must run already: a script on another machine cannot start it
    monkeypatch.setenv("RUNYARD_YARD_ELSEWHERE", "1")
    path = weights("by wire")
    path.write_bytes(b"0123456789abcdef" * 600_000)  # larger than one write
    model = Model.register(workspace, path, name)
    assert Path(model.download(str(path.parent / "there"))).read_bytes() == path.read_bytes()


def test_a_repeated_registration_is_one_version(workspace: Workspace, name: str, weights: Weights) -> None:
    connection = workspace.connection
    with open(weights("x"), "rb") as file:
        connection.upload("/api/model-uploads/0123abcd/model.pt", file)
    body = {"registration_id": f"only-{name}", "name": name, "upload_id": "0123abcd"}
    assert connection.post("/api/models", body)["version"] == 1
    assert connection.post("/api/models", body)["version"] == 1
    assert len(Model.list(workspace, name=name)) == 1
    with pytest.raises(UserErrorException, match="no files were uploaded"):
        connection.post("/api/models", {**body, "registration_id": f"other-{name}"})


def test_a_model_of_a_run_has_its_origin(
    workspace: Workspace, experiment: Experiment, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B11.76."""
    monkeypatch.chdir(tmp_path)
    run = experiment.start_logging(snapshot_directory=None)
    run.log("accuracy", 0.5)
    run.log("accuracy", 0.98)
    run.log("loss", float("nan"))
    (tmp_path / "outputs").mkdir(exist_ok=True)
    (tmp_path / "outputs" / "model.pt").write_text("weights")
    model = run.register_model(model_name=name, model_path="./outputs/model.pt", tags={"acc": 0.98})
    run.complete()
    assert model.files() == ["model.pt"]
    assert (model.run_id, model.experiment_name) == (run.id, experiment.name)
    assert model.metrics == {"accuracy": 0.98, "loss": "NaN"}  # JSON has no NaN, and null would mean a missing value
    assert model.lineage()["run_id"] == run.id
    assert model.run == run
    assert [m.id for m in Model.list(workspace, run_id=run.id)] == [model.id]
    with pytest.raises(ModelPathNotFoundException, match="no file or folder 'outputs/nothing'") as caught:
        run.register_model(name, "outputs/nothing")
    assert "outputs" in caught.value.hint
    with pytest.raises(ModelPathNotFoundException, match=f"'{name}'"):
        run.register_model(name)


def test_two_versions_are_compared(workspace: Workspace, name: str, weights: Weights) -> None:
    first = Model.register(workspace, weights("1"), name, tags={"lr": "0.1", "same": "x"})
    second = Model.register(workspace, weights("22"), name, tags={"lr": "0.2", "same": "x"}, description="newer")
    comparison = first.compare(second)
    assert (comparison["left"], comparison["right"], comparison["same_files"]) == (first.id, second.id, False)
    assert comparison["tags"] == [{"name": "lr", "left": "0.1", "right": "0.2"}]
    assert comparison["files"] == [{"name": "model.pt", "left": 1, "right": 2}]
    assert {item["name"] for item in comparison["about"]} == {"description", "size"}
    assert first.compare("2") == comparison


def test_a_scoring_script_finds_its_models_in_its_folder(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14.95."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AZUREML_MODEL_DIR", raising=False)
    top = tmp_path / "azureml-models"
    for version in (2, 10):
        (top / "net" / str(version)).mkdir(parents=True)
        (top / "net" / str(version) / "model.pt").write_text(str(version))
    assert Model.get_model_path("net") == "azureml-models/net/10/model.pt"
    assert Model.get_model_path("net", version=2) == "azureml-models/net/2/model.pt"
    (top / "folder" / "1" / "model").mkdir(parents=True)
    assert Model.get_model_path(model_name="folder") == "azureml-models/folder/1/model"
    (tmp_path / "here.pkl").write_text("x")
    assert Model.get_model_path("here.pkl") == "here.pkl"
    with pytest.raises(ModelNotFoundException, match="'other'") as missing:
        Model.get_model_path("other")
    assert "net:10" in missing.value.hint
    with pytest.raises(WebserviceException, match="whole number"):
        Model.get_model_path("net", version="2")  # type: ignore[arg-type]
    monkeypatch.chdir("/")
    monkeypatch.setenv("AZUREML_MODEL_DIR", str(top / "net" / "10"))
    assert Model.get_model_path("net") == str(top / "net" / "10" / "model.pt")


@pytest.mark.parametrize("other_is_faster", [False, True])
def test_another_process_never_sees_a_partial_download(
    workspace: Workspace, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_is_faster: bool
) -> None:
    (tmp_path / "net").mkdir()
    for part in ("a", "b"):
        (tmp_path / "net" / part).write_text(part)
    Model.register(workspace, tmp_path / "net", name)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    existed: list[bool] = []
    download, folder = workspace.connection.download, Path("azureml-models") / name / "1"

    def watched(path: str, target: Path) -> object:
        existed.append(folder.exists())
        if other_is_faster and len(existed) == 2:
            shutil.copytree(tmp_path / "net", folder / "net")
        return download(path, target)

    monkeypatch.setattr(workspace.connection, "download", watched)
    path = Path(Model.get_model_path(name, _workspace=workspace))
    assert path == folder / "net"
    assert existed == [False, False]
    assert sorted(part.read_text() for part in path.iterdir()) == ["a", "b"]
    assert [version.name for version in folder.parent.iterdir()] == ["1"]


def test_a_model_path_with_a_workspace_downloads_the_model(
    workspace: Workspace, name: str, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Model.register(workspace, weights("downloaded"), name)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = Model.get_model_path(name, _workspace=workspace)
    assert path == f"azureml-models/{name}/1/model.pt"
    assert Path(path).read_text() == "downloaded"
    with pytest.raises(ModelNotFoundException, match="no model named"):
        Model.get_model_path(f"{name}-not", _workspace=workspace)


MODEL_IN_A_RUN = """
import sys
from pathlib import Path
from runyard import Model
for name in sys.argv[1:]:
    try:
        path = Model.get_model_path(name)
        print(name, path, Path(path).is_file() and Path(path).read_text())
    except Exception as error:
        print(name, error)
"""


def log_text(run: Run) -> str:
    return str(run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"])


def test_in_a_run_the_registry_comes_before_files_of_the_project(
    workspace: Workspace, experiment: Experiment, name: str, weights: Weights, project
) -> None:
    Model.register(workspace, weights("registered"), name)
    folder = project(train=MODEL_IN_A_RUN)
    for other in (name, "not-registered", "folder/model.pt"):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).write_text("of the project")
    run = experiment.submit(with_this_python(folder, arguments=[name, name, "not-registered", "folder/model.pt"]))
    run.wait_for_completion()
    log = log_text(run)
    assert log.count(f"{name} azureml-models/{name}/1/model.pt registered\n") == 2
    assert "not-registered not-registered of the project\n" in log
    assert "no model 'not-registered' is registered: using " in log
    assert "folder/model.pt folder/model.pt of the project\n" in log


def test_in_a_run_another_model_in_the_folder_of_downloads_is_refused(
    workspace: Workspace, experiment: Experiment, name: str, weights: Weights, project
) -> None:
    Model.register(workspace, weights("registered"), name)
    folder = project(train=MODEL_IN_A_RUN)
    shipped = folder / "azureml-models" / name / "1" / "model.pt"
    shipped.parent.mkdir(parents=True)
    shipped.write_text("of the project")
    run = experiment.submit(with_this_python(folder, arguments=[name]))
    run.wait_for_completion()
    assert f"azureml-models/{name}/1 exists, and is not version 1 of the model '{name}'" in log_text(run)
