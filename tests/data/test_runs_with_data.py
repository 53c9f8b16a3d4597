"""Data in runs: mounted, downloaded, uploaded; from a folder, from S3 and from Azure; in one process and in several."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from data_servers import Wire
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
from runyard.orchestrator.data import Given, shown_to
from runyard.sdk.training.run_configuration import DataReferenceConfiguration
from support import eventually, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]

# prints what each argument is: a file with its text, or a folder with its files and their texts
LOOK = """
import json, os, pathlib, sys
seen = {}
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    path = pathlib.Path(value)
    files = [path] if path.is_file() else sorted(p for p in path.rglob('*') if p.is_file())
    seen[name] = {'path': value, 'files': {str(p.relative_to(path)): p.read_text() for p in files}}
(pathlib.Path('outputs') / f"seen_{os.environ.get('RUNYARD_RANK', 0)}.json").write_text(json.dumps(seen))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("the a")
    (folder / "sub" / "b.txt").write_text("the b")
    return folder


@pytest.fixture
def look(experiment: Experiment, project: Callable[..., Path]) -> Callable[..., dict]:
    """Submits, waits, and returns what the script saw of its arguments."""

    def submit(arguments: list[object], script: str = LOOK, **settings: object) -> dict:
        config = with_this_python(project(train=script), arguments=arguments)
        for name, value in settings.items():
            setattr(config.run_config, name, value)
        run = experiment.submit(config)
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        return seen_by(run)

    return submit


def seen_by(run: Run, rank: int = 0) -> dict:
    return json.loads(run_file(run, f"outputs/seen_{rank}.json"))


def run_file(run: Run, name: str) -> str:
    target = Path(os.environ["RUNYARD_HOME"]) / f"{run.id}-file"
    run.download_file(name, str(target))
    return target.read_text()


BOTH = {"a.txt": "the a", "sub/b.txt": "the b"}


def test_a_folder_is_mounted_in_place_and_a_file_is_itself(workspace: Workspace, data: Path, look) -> None:
    """B3.16, B3.18."""
    store = workspace.get_default_datastore()
    store.upload(str(data), "./mounted", show_progress=False)
    seen = look(["--data", store.path("mounted").as_mount(), "--file", store.path("mounted/a.txt"), "--all", store])
    assert seen["--data"]["files"] == BOTH
    assert seen["--data"]["path"] == str(store.folder / "mounted")
    assert seen["--file"] == {"path": str(store.folder / "mounted" / "a.txt"), "files": {".": "the a"}}
    assert seen["--all"]["path"] == str(store.folder)


def test_a_download_is_a_copy_that_the_script_may_write_to(workspace: Workspace, data: Path, look) -> None:
    store = workspace.get_default_datastore()
    store.upload(str(data), "copied", show_progress=False)
    scribble = "import sys, pathlib\n(pathlib.Path(sys.argv[2]) / 'a.txt').write_text('mine')\n" + LOOK
    seen = look(["--data", store.path("copied").as_download()], script=scribble)
    assert seen["--data"]["files"] == {**BOTH, "a.txt": "mine"}
    assert (store.folder / "copied" / "a.txt").read_text() == "the a"
    eventually(lambda: not Path(seen["--data"]["path"]).exists(), "the run's own copy has gone with it")


def test_what_a_script_wrote_is_uploaded_also_when_it_failed(
    workspace: Workspace, experiment: Experiment, project, new_name
) -> None:
    store, place = workspace.get_default_datastore(), new_name()
    write = (
        "import os, sys, pathlib\nout = pathlib.Path(os.environ['AZUREML_DATAREFERENCE_results'])\n"
        "(out / 'deep').mkdir()\n(out / 'deep' / 'model.txt').write_text('weights')\nsys.exit(3)"
    )
    config = with_this_python(project(train=write), arguments=[store.path(place, "results").as_upload()])
    run = experiment.submit(config)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert store.list(place) == [f"{place}/deep/model.txt"]
    assert (store.folder / place / "deep" / "model.txt").read_text() == "weights"


def test_what_cannot_be_uploaded_costs_the_run_nothing_else(
    workspace: Workspace, experiment: Experiment, project, new_name
) -> None:
    store, place = workspace.get_default_datastore(), new_name()
    write = (
        "import os, sys\nfrom runyard import Run\nos.symlink('loop', sys.argv[1] + '/loop')\n"
        "os.makedirs(os.fsencode(sys.argv[2]) + b'/\\xff')\n"
        "open(os.fsencode(sys.argv[2]) + b'/\\xff/file', 'w').write('odd')\n"
        "open('outputs/kept.txt', 'w').write('x')\nRun.get_context().log('last', 7)"
    )
    uploads = [store.path(f"{place}/{name}", name).as_upload() for name in ("looped", "odd")]
    run = experiment.submit(with_this_python(project(train=write), arguments=uploads))
    run.wait_for_completion()
    assert "outputs/kept.txt" in run.get_file_names()
    assert run.get_metrics() == {"last": 7}
    (warning,) = run.get_details()["warnings"]
    assert "data looped in datastore" in str(warning)
    (odd,) = (store.folder / place / "odd").iterdir()
    assert (os.fsencode(odd.name), (odd / "file").read_text()) == (b"\xff", "odd")


def test_an_upload_may_be_a_file_among_the_outputs(
    workspace: Workspace, experiment: Experiment, project, new_name
) -> None:
    store, place = workspace.get_default_datastore(), new_name()
    reference = store.path(f"{place}/best.txt").as_upload(path_on_compute="outputs/model.txt")
    config = with_this_python(project(train="open('outputs/model.txt', 'w').write('w')"), arguments=[reference])
    run = experiment.submit(config)
    run.wait_for_completion()
    assert (store.folder / place / "best.txt").read_text() == "w"
    assert "outputs/model.txt" in run.get_file_names()


def test_references_in_the_run_configuration_are_found_by_their_variable(
    workspace: Workspace, data: Path, look
) -> None:
    """B3.19."""
    store = workspace.get_default_datastore()
    store.upload(str(data), "by-hand", show_progress=False)
    wanted = DataReferenceConfiguration(store.name, mode="download", path_on_datastore="by-hand", overwrite=True)
    seen = look(["--data", str(store.as_download())], data_references={store.name: wanted})
    assert seen["--data"]["files"] == BOTH


def test_every_process_of_every_node_finds_the_data(
    workspace: Workspace, experiment: Experiment, data: Path, project, new_name
) -> None:
    cluster = ComputeTarget.create(workspace, new_name(), AmlCompute.provisioning_configuration(max_nodes=2))
    store = workspace.get_default_datastore()
    store.upload(str(data), "for-all", show_progress=False)
    config = ScriptRunConfig(
        project(train=LOOK),
        script="train.py",
        arguments=["--data", store.path("for-all").as_mount(), "--copy", store.path("for-all").as_download()],
        compute_target=cluster,
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
    for name in ("--data", "--copy"):
        assert [seen_by(run, rank)[name]["files"] for rank in range(4)] == [BOTH] * 4


@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_a_blob_store_is_read_from_a_cache_that_is_filled_once(
    kind: str, workspace: Workspace, data: Path, look, new_name, request
) -> None:
    store = blob_store(kind, workspace, new_name(), request)
    store.upload(str(data), "far", show_progress=False)
    first = look(["--data", store.path("far").as_mount(), "--file", store.path("far/sub/b.txt").as_mount()])
    assert first["--data"]["files"] == BOTH
    assert first["--file"]["files"] == {".": "the b"}
    again = look(["--data", store.path("far").as_mount(), "--copy", store.path("far").as_download()])
    assert again["--data"] == first["--data"]
    assert again["--copy"]["files"] == BOTH
    changed = data / "a.txt"
    changed.write_text("another a")
    store.upload(str(data), "far", overwrite=True, show_progress=False)
    assert look(["--data", store.path("far").as_mount()])["--data"]["files"] == {**BOTH, "a.txt": "another a"}


def test_what_was_written_into_the_cache_is_not_given_to_the_next_run(
    workspace: Workspace, data: Path, look, new_name, request
) -> None:
    store = blob_store("s3", workspace, new_name(), request)
    store.upload(str(data), "far", show_progress=False)
    first = look(["--data", store.path("far").as_mount()])
    spoilt = Path(first["--data"]["path"]) / "a.txt"
    spoilt.chmod(0o600)
    spoilt.write_text("WRONG")
    assert look(["--data", store.path("far").as_mount()])["--data"] == first["--data"]


def test_data_of_a_blob_store_is_brought_with_words_and_in_a_phase_of_its_own(
    workspace: Workspace, experiment: Experiment, data: Path, project, new_name, request
) -> None:
    store = blob_store("s3", workspace, new_name(), request)
    for file in (data / "a.txt", data / "sub" / "b.txt"):
        file.write_text(os.urandom(8).hex())  # contents that no other test has brought
    store.upload(str(data), "told", show_progress=False)
    run = experiment.submit(with_this_python(project(train="pass"), arguments=[store.path("told", "told").as_mount()]))
    run.wait_for_completion()
    log = run_file(run, "azureml-logs/30_data_log.txt")
    assert "data told: downloaded 2 of 2 files" in log
    phases = workspace.connection.get(f"/api/runs/{run.id}/timeline")
    assert [phase["phase"] for phase in phases][:4] == ["snapshot", "environment", "data", "queue"]
    text = json.dumps([workspace.connection.get(f"/api/runs/{run.id}"), run.get_details(), log])
    assert "the-secret-of-the-key" not in text


def test_data_that_is_not_there_is_refused_before_anything_starts(
    workspace: Workspace, experiment: Experiment, project, new_name, request
) -> None:
    folder, far = workspace.get_default_datastore(), blob_store("s3", workspace, new_name(), request)
    with pytest.raises(UserErrorException, match="no files at 'nowhere'"):
        experiment.submit(with_this_python(project(train="pass"), arguments=[folder.path("nowhere").as_mount()]))
    run = experiment.submit(with_this_python(project(train="pass"), arguments=[far.path("nowhere").as_mount()]))
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "no files at 'nowhere'" in str(run.get_details()["error"])


def test_a_dry_run_shows_where_data_will_be(workspace: Workspace, experiment: Experiment, project) -> None:
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


def test_script_params_and_inputs_stand_in_the_run_configuration(workspace: Workspace, project) -> None:
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
    found = estimator.run_config.data_references
    assert set(found) == {params["--data"].data_reference_name, store.name, "also"}  # one for the root, twice used
    assert (found["also"].mode, found["also"].path_on_data_store) == ("download", "b")
    with pytest.raises(UserErrorException):
        Estimator(project(), compute_target="local", entry_script="train.py", inputs=["a path"], user_managed=True)


def test_a_run_whose_data_does_not_come_says_so_and_can_be_canceled(
    workspace: Workspace, experiment: Experiment, data: Path, project, s3, new_name
) -> None:
    with Wire(s3.port) as wire:
        name = new_name()
        given = {**s3.bucket(name), "endpoint": f"http://127.0.0.1:{wire.port}"}
        store = Datastore.register_s3(workspace, name, **given)
        store.upload(str(data), "far", show_progress=False)
        wire.cut()
        run = experiment.submit(with_this_python(project(train="pass"), arguments=[store.path("far", "far")]))
        eventually(lambda: "no connection" in run.activity, "it says what it waits for", 60)
        assert run.get_status() == "Preparing"
        run.cancel()
        run.wait_for_completion(raise_on_error=False)
        assert run.get_status() == "Canceled"


def test_the_children_of_a_sweep_share_the_data(
    workspace: Workspace, experiment: Experiment, data: Path, project
) -> None:
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


def test_a_container_is_shown_the_data_that_is_outside_of_the_run() -> None:
    prepared = ContainerPrepared("key", "/usr/bin/python3", argv_prefix=("podman", "run"), image="trainer:1")
    shown = shown_to(prepared, Given({"a": "/data/set", "b": "/made"}, shared=("/data/set",), outside=("/made",)))
    argv, _ = shown.command(["train.py"], {}, Path("/work"), inherited={})
    assert argv[:6] == ("podman", "run", "--volume", "/data/set:/data/set:ro", "--volume", "/made:/made")
