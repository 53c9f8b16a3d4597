"""Mounted data is read-only for the run if the agent has the privileges, but not for others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import (
    AmlCompute,
    ComputeTarget,
    Datastore,
    Experiment,
    PyTorchConfiguration,
    Run,
    ScriptRunConfig,
    Workspace,
)
from support import with_this_python

pytestmark = [
    pytest.mark.real,
    pytest.mark.xdist_group("data"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root"),
]

TRY_TO_WRITE = """
import pathlib, sys
for path in sys.argv[1:]:
    try:
        (pathlib.Path(path) / 'new.txt').write_text('new')
        print('wrote')
    except OSError as error:
        print(error.strerror)
"""


def outputs_of(run: Run) -> list[list[str]]:
    logs = run.get_details_with_logs()["logFiles"]
    return [text.splitlines() for name, text in sorted(logs.items()) if "70_driver_log" in name]


@pytest.fixture
def uploaded(workspace: Workspace, tmp_path: Path, new_name) -> tuple[Datastore, str]:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("the a")
    store, name = workspace.get_default_datastore(), new_name()
    store.upload(str(folder), name, show_progress=False)
    return store, name


def test_mounts_are_read_only_but_downloads_and_uploads_are_writable(
    uploaded: tuple[Datastore, str], experiment: Experiment, project: Callable[..., Path]
) -> None:
    store, name = uploaded
    uses = [store.path(name).as_mount(), store.path(name).as_download(), store.path(f"{name}-new").as_upload()]
    run = experiment.submit(with_this_python(project(train=TRY_TO_WRITE), arguments=uses))
    run.wait_for_completion()
    assert outputs_of(run) == [["Read-only file system", "wrote", "wrote"]]
    assert store.list(name) == [f"{name}/a.txt"]
    assert store.list(f"{name}-new") == [f"{name}-new/new.txt"]


def test_other_processes_can_still_write(
    uploaded: tuple[Datastore, str], experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    store, name = uploaded
    gate = tmp_path / "gate"
    wait = f"import pathlib, sys, time\nprint('up', flush=True)\nwhile not pathlib.Path({str(gate)!r}).exists():\n"
    wait += "    time.sleep(0.01)\nprint(sorted(p.name for p in pathlib.Path(sys.argv[1]).iterdir()))"
    run = experiment.submit(with_this_python(project(train=wait), arguments=[store.path(name).as_mount()]))
    (tmp_path / "b.txt").write_text("the b")
    store.upload_files([str(tmp_path / "b.txt")], target_path=name, show_progress=False)
    gate.touch()
    run.wait_for_completion()
    assert outputs_of(run) == [["up", "['a.txt', 'b.txt']"]]


def test_mounts_are_read_only_for_all_ranks(
    workspace: Workspace,
    uploaded: tuple[Datastore, str],
    experiment: Experiment,
    project: Callable[..., Path],
    new_name,
) -> None:
    store, name = uploaded
    cluster = ComputeTarget.create(workspace, new_name(), AmlCompute.provisioning_configuration(max_nodes=2))
    config = ScriptRunConfig(
        project(train=TRY_TO_WRITE),
        script="train.py",
        arguments=[store.path(name).as_mount()],
        compute_target=cluster,
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=2, node_count=2),
    )
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    run.wait_for_completion()
    assert outputs_of(run) == [["Read-only file system"]] * 2


def test_a_mounted_parent_of_the_run_folder_keeps_the_run_folder_writable(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], new_name
) -> None:
    parent = Datastore.register_folder(workspace, new_name(), os.environ["RUNYARD_HOME"])
    write = "import sys, pathlib\npathlib.Path('outputs/new.txt').write_text('new')"
    run = experiment.submit(with_this_python(project(train=write), arguments=[parent.as_mount()]))
    run.wait_for_completion()
    assert "outputs/new.txt" in run.get_file_names()
