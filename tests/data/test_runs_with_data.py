"""Data in runs: mounts, downloads and uploads, with folders, S3 and Azure, in one and several processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from data_servers import CuttableProxy
from runyard import (
    AmlCompute,
    ComputeTarget,
    Datastore,
    Estimator,
    Experiment,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    Workspace,
)
from runyard.environments.container import ContainerPrepared
from runyard.errors import UserErrorException
from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from runyard.orchestrator.data import DataPaths, mount_in_container
from runyard.sdk.training.run_configuration import DataReferenceConfiguration
from support import eventually, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]

# records the files and their contents at the path of each argument
LIST_ARGUMENTS = """
import json, os, pathlib, sys
result = {}
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    path = pathlib.Path(value)
    files = [path] if path.is_file() else sorted(p for p in path.rglob('*') if p.is_file())
    result[name] = {'path': value, 'files': {str(p.relative_to(path)): p.read_text() for p in files}}
(pathlib.Path('outputs') / f"data_{os.environ.get('RUNYARD_RANK', 0)}.json").write_text(json.dumps(result))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("the a")
    (folder / "sub" / "b.txt").write_text("the b")
    return folder


@pytest.fixture
def list_arguments(experiment: Experiment, project: Callable[..., Path]) -> Callable[..., dict]:
    """Submits a run and returns the files that the script found at its arguments."""

    def submit(arguments: list[object], script: str = LIST_ARGUMENTS, **settings: object) -> dict:
        config = with_this_python(project(train=script), arguments=arguments)
        for name, value in settings.items():
            setattr(config.run_config, name, value)
        run = experiment.submit(config)
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        return recorded_by(run)

    return submit


def recorded_by(run: Run, rank: int = 0) -> dict:
    return json.loads(run_file(run, f"outputs/data_{rank}.json"))


def run_file(run: Run, name: str) -> str:
    target = Path(os.environ["RUNYARD_HOME"]) / f"{run.id}-file"
    run.download_file(name, str(target))
    return target.read_text()


FILES = {"a.txt": "the a", "sub/b.txt": "the b"}


def test_local_folders_and_files_are_mounted_in_place(workspace: Workspace, data: Path, list_arguments) -> None:
    """B3.16, B3.18."""
    store = workspace.get_default_datastore()
    store.upload(str(data), "./mounted", show_progress=False)
    result = list_arguments(
        ["--data", store.path("mounted").as_mount(), "--file", store.path("mounted/a.txt"), "--all", store]
    )
    assert result["--data"]["files"] == FILES
    assert result["--data"]["path"] == str(store.folder / "mounted")
    assert result["--file"] == {"path": str(store.folder / "mounted" / "a.txt"), "files": {".": "the a"}}
    assert result["--all"]["path"] == str(store.folder)


def test_a_download_is_a_writable_copy(workspace: Workspace, data: Path, list_arguments) -> None:
    store = workspace.get_default_datastore()
    store.upload(str(data), "copied", show_progress=False)
    modify = "import sys, pathlib\n(pathlib.Path(sys.argv[2]) / 'a.txt').write_text('changed')\n" + LIST_ARGUMENTS
    result = list_arguments(["--data", store.path("copied").as_download()], script=modify)
    assert result["--data"]["files"] == {**FILES, "a.txt": "changed"}
    assert (store.folder / "copied" / "a.txt").read_text() == "the a"
    eventually(lambda: not Path(result["--data"]["path"]).exists(), "the copy is deleted after the run")


def test_outputs_are_uploaded_also_if_the_script_failed(
    workspace: Workspace, experiment: Experiment, project, new_name
) -> None:
    store, prefix = workspace.get_default_datastore(), new_name()
    write = (
        "import os, sys, pathlib\nout = pathlib.Path(os.environ['AZUREML_DATAREFERENCE_results'])\n"
        "(out / 'deep').mkdir()\n(out / 'deep' / 'model.txt').write_text('weights')\nsys.exit(3)"
    )
    config = with_this_python(project(train=write), arguments=[store.path(prefix, "results").as_upload()])
    run = experiment.submit(config)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert store.list(prefix) == [f"{prefix}/deep/model.txt"]
    assert (store.folder / prefix / "deep" / "model.txt").read_text() == "weights"


def test_a_failed_upload_keeps_the_other_results(
    workspace: Workspace, experiment: Experiment, project, new_name
) -> None:
    store, prefix = workspace.get_default_datastore(), new_name()
    write = (
        "import os, sys\nfrom runyard import Run\nos.symlink('loop', sys.argv[1] + '/loop')\n"
        "os.makedirs(os.fsencode(sys.argv[2]) + b'/\\xff')\n"
        "open(os.fsencode(sys.argv[2]) + b'/\\xff/file', 'w').write('odd')\n"
        "open('outputs/model.txt', 'w').write('x')\nRun.get_context().log('last', 7)"
    )
    uploads = [store.path(f"{prefix}/{name}", name).as_upload() for name in ("looped", "odd")]
    run = experiment.submit(with_this_python(project(train=write), arguments=uploads))
    run.wait_for_completion()
    assert "outputs/model.txt" in run.get_file_names()
    assert run.get_metrics() == {"last": 7}
    (warning,) = run.get_details()["warnings"]
    assert "data looped in datastore" in str(warning)
    (odd,) = (store.folder / prefix / "odd").iterdir()
    assert (os.fsencode(odd.name), (odd / "file").read_text()) == (b"\xff", "odd")


def test_an_output_file_can_be_uploaded(workspace: Workspace, experiment: Experiment, project, new_name) -> None:
    store, prefix = workspace.get_default_datastore(), new_name()
    reference = store.path(f"{prefix}/best.txt").as_upload(path_on_compute="outputs/model.txt")
    config = with_this_python(project(train="open('outputs/model.txt', 'w').write('w')"), arguments=[reference])
    run = experiment.submit(config)
    run.wait_for_completion()
    assert (store.folder / prefix / "best.txt").read_text() == "w"
    assert "outputs/model.txt" in run.get_file_names()


def test_references_in_the_run_configuration_are_resolved(workspace: Workspace, data: Path, list_arguments) -> None:
    """B3.19."""
    store = workspace.get_default_datastore()
    store.upload(str(data), "by-hand", show_progress=False)
    configuration = DataReferenceConfiguration(store.name, mode="download", path_on_datastore="by-hand", overwrite=True)
    result = list_arguments(["--data", str(store.as_download())], data_references={store.name: configuration})
    assert result["--data"]["files"] == FILES


def test_every_rank_of_every_node_finds_the_data(
    workspace: Workspace, experiment: Experiment, data: Path, project, new_name
) -> None:
    cluster = ComputeTarget.create(workspace, new_name(), AmlCompute.provisioning_configuration(max_nodes=2))
    store = workspace.get_default_datastore()
    store.upload(str(data), "for-all", show_progress=False)
    config = ScriptRunConfig(
        project(train=LIST_ARGUMENTS),
        script="train.py",
        arguments=["--data", store.path("for-all").as_mount(), "--copy", store.path("for-all").as_download()],
        compute_target=cluster,
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    for name in ("--data", "--copy"):
        assert [recorded_by(run, rank)[name]["files"] for rank in range(4)] == [FILES] * 4


@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_a_blob_store_is_read_through_the_cache(
    kind: str, workspace: Workspace, data: Path, list_arguments, new_name, request
) -> None:
    store = blob_store(kind, workspace, new_name(), request)
    store.upload(str(data), "remote", show_progress=False)
    first = list_arguments(
        ["--data", store.path("remote").as_mount(), "--file", store.path("remote/sub/b.txt").as_mount()]
    )
    assert first["--data"]["files"] == FILES
    assert first["--file"]["files"] == {".": "the b"}
    again = list_arguments(["--data", store.path("remote").as_mount(), "--copy", store.path("remote").as_download()])
    assert again["--data"] == first["--data"]
    assert again["--copy"]["files"] == FILES
    changed = data / "a.txt"
    changed.write_text("another a")
    store.upload(str(data), "remote", overwrite=True, show_progress=False)
    assert list_arguments(["--data", store.path("remote").as_mount()])["--data"]["files"] == {
        **FILES,
        "a.txt": "another a",
    }


def test_a_modified_file_in_the_cache_is_downloaded_again(
    workspace: Workspace, data: Path, list_arguments, new_name, request
) -> None:
    store = blob_store("s3", workspace, new_name(), request)
    store.upload(str(data), "remote", show_progress=False)
    first = list_arguments(["--data", store.path("remote").as_mount()])
    cached = Path(first["--data"]["path"]) / "a.txt"
    cached.chmod(0o600)
    cached.write_text("WRONG")
    assert list_arguments(["--data", store.path("remote").as_mount()])["--data"] == first["--data"]


def test_downloads_are_logged_and_shown_as_a_phase(
    workspace: Workspace, experiment: Experiment, data: Path, project, new_name, request
) -> None:
    store = blob_store("s3", workspace, new_name(), request)
    for file in (data / "a.txt", data / "sub" / "b.txt"):
        file.write_text(os.urandom(8).hex())  # contents that are not in the cache
    store.upload(str(data), "logged", show_progress=False)
    run = experiment.submit(
        with_this_python(project(train="pass"), arguments=[store.path("logged", "logged").as_mount()])
    )
    run.wait_for_completion()
    log = run_file(run, "azureml-logs/30_data_log.txt")
    assert "data logged: downloaded 2 of 2 files" in log
    phases = workspace.connection.get(f"/api/runs/{run.id}/timeline")
    assert [phase["phase"] for phase in phases][:4] == ["snapshot", "environment", "data", "queue"]
    text = json.dumps([workspace.connection.get(f"/api/runs/{run.id}"), run.get_details(), log])
    assert "the-secret-of-the-key" not in text


def test_missing_data_is_refused(workspace: Workspace, experiment: Experiment, project, new_name, request) -> None:
    local, remote = workspace.get_default_datastore(), blob_store("s3", workspace, new_name(), request)
    with pytest.raises(UserErrorException, match="no files at 'nowhere'"):
        experiment.submit(with_this_python(project(train="pass"), arguments=[local.path("nowhere").as_mount()]))
    run = experiment.submit(with_this_python(project(train="pass"), arguments=[remote.path("nowhere").as_mount()]))
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "no files at 'nowhere'" in str(run.get_details()["error"])


def test_a_dry_run_shows_the_data_variables(workspace: Workspace, experiment: Experiment, project) -> None:
    store = workspace.get_default_datastore()
    text = experiment.submit(
        with_this_python(project(train="pass"), arguments=["--data", store.as_mount()]), dry_run=True
    )
    assert "AZUREML_DATAREFERENCE_workspaceblobstore=" in text


def blob_store(kind: str, workspace: Workspace, name: str, request: pytest.FixtureRequest):
    server = request.getfixturevalue(kind)
    if kind == "s3":
        return Datastore.register_s3(workspace, name, **server.bucket(name))
    return Datastore.register_azure_blob_container(workspace, name, **server.container(name))


def test_script_params_and_inputs_are_in_the_run_configuration(workspace: Workspace, project) -> None:
    """B3.17."""
    store = workspace.get_default_datastore()
    params = {"--data": store.path("a"), "--root": store, "--again": store.as_mount()}
    estimator = Estimator(
        project(train="pass"),
        compute_target="local",
        entry_script="train.py",
        script_params=params,
        inputs=[store.path("b", "also").as_download()],
        user_managed=True,
    )
    references = estimator.run_config.data_references
    assert set(references) == {
        params["--data"].data_reference_name,
        store.name,
        "also",
    }  # one reference for both uses of the root
    assert (references["also"].mode, references["also"].path_on_data_store) == ("download", "b")
    with pytest.raises(UserErrorException):
        Estimator(project(), compute_target="local", entry_script="train.py", inputs=["a path"], user_managed=True)


def test_a_run_waiting_for_an_unreachable_store_can_be_canceled(
    workspace: Workspace, experiment: Experiment, data: Path, project, s3, new_name
) -> None:
    with CuttableProxy(s3.port) as proxy:
        name = new_name()
        configuration = {**s3.bucket(name), "endpoint": f"http://127.0.0.1:{proxy.port}"}
        store = Datastore.register_s3(workspace, name, **configuration)
        store.upload(str(data), "remote", show_progress=False)
        proxy.cut()
        run = experiment.submit(with_this_python(project(train="pass"), arguments=[store.path("remote", "remote")]))
        eventually(lambda: "no connection" in run.activity, "the run reports the problem", 60)
        assert run.get_status() == "Preparing"
        run.cancel()
        run.wait_for_completion(raise_on_error=False)
        assert run.get_status() == "Canceled"


def test_children_of_a_sweep_share_the_data(workspace: Workspace, experiment: Experiment, data: Path, project) -> None:
    store = workspace.get_default_datastore()
    store.upload(str(data), "swept", show_progress=False)
    script = (
        "import pathlib, sys\nfrom runyard import Run\n"
        "size = len((pathlib.Path(sys.argv[2]) / 'a.txt').read_text())\n"
        "Run.get_context().log('size', size * int(sys.argv[4]))"
    )
    estimator = Estimator(
        project(train=script),
        compute_target="local",
        entry_script="train.py",
        script_params={"--data": store.path("swept").as_mount()},
        user_managed=True,
    )
    sweep = experiment.submit(
        HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=GridParameterSampling({"--times": choice(1, 2)}),
            primary_metric_name="size",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=2,
        )
    )
    sweep.wait_for_completion()
    assert sweep.get_best_run_by_primary_metric().get_metrics()["size"] == 2 * len("the a")


def test_data_outside_of_the_run_folder_is_mounted_into_the_container() -> None:
    prepared = ContainerPrepared("key", "/usr/bin/python3", argv_prefix=("podman", "run"), image="trainer:1")
    paths = DataPaths({"a": "/data/set", "b": "/new"}, shared=("/data/set",), writable=("/new",))
    argv, _ = mount_in_container(prepared, paths).command(["train.py"], {}, Path("/work"), inherited={})
    assert argv[:6] == ("podman", "run", "--volume", "/data/set:/data/set:ro", "--volume", "/new:/new")
