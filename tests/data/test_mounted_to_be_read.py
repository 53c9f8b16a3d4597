"""What a run mounts it reads: it cannot write there, where the machine can see to it, and everybody else still can."""

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
    pytest.mark.skipif(os.geteuid() != 0, reason="a view of one's own takes privileges"),
]

TRY_TO_WRITE = """
import pathlib, sys
for path in sys.argv[1:]:
    try:
        (pathlib.Path(path) / 'mine.txt').write_text('mine')
        print('wrote')
    except OSError as error:
        print(error.strerror)
"""


def said_by(run: Run) -> list[list[str]]:
    found = run.get_details_with_logs()["logFiles"]
    return [text.splitlines() for name, text in sorted(found.items()) if "70_driver_log" in name]


@pytest.fixture
def kept(workspace: Workspace, tmp_path: Path, new_name) -> tuple[Datastore, str]:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("the a")
    store, name = workspace.get_default_datastore(), new_name()
    store.upload(str(folder), name, show_progress=False)
    return store, name


def test_a_mount_is_read_only_while_a_copy_and_an_upload_are_the_scripts_own(
    kept: tuple[Datastore, str], experiment: Experiment, project: Callable[..., Path]
) -> None:
    store, name = kept
    uses = [store.path(name).as_mount(), store.path(name).as_download(), store.path(f"{name}-new").as_upload()]
    run = experiment.submit(with_this_python(project(train=TRY_TO_WRITE), arguments=uses))
    run.wait_for_completion()
    assert said_by(run) == [["Read-only file system", "wrote", "wrote"]]
    assert store.list(name) == [f"{name}/a.txt"]
    assert store.list(f"{name}-new") == [f"{name}-new/mine.txt"]


def test_the_yard_and_everybody_else_write_there_as_before(
    kept: tuple[Datastore, str], experiment: Experiment, project: Callable[..., Path], tmp_path: Path
) -> None:
    store, name = kept
    gate = tmp_path / "gate"
    wait = f"import pathlib, sys, time\nprint('up', flush=True)\nwhile not pathlib.Path({str(gate)!r}).exists():\n"
    wait += "    time.sleep(0.01)\nprint(sorted(p.name for p in pathlib.Path(sys.argv[1]).iterdir()))"
    run = experiment.submit(with_this_python(project(train=wait), arguments=[store.path(name).as_mount()]))
    (tmp_path / "b.txt").write_text("the b")
    store.upload_files([str(tmp_path / "b.txt")], target_path=name, show_progress=False)
    gate.touch()
    run.wait_for_completion()
    assert said_by(run) == [["up", "['a.txt', 'b.txt']"]]


def test_no_process_of_a_gang_writes_to_what_it_mounts(
    workspace: Workspace, kept: tuple[Datastore, str], experiment: Experiment, project: Callable[..., Path], new_name
) -> None:
    store, name = kept
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
    assert said_by(run) == [["Read-only file system"]] * 2


def test_a_datastore_around_the_runs_own_folder_leaves_the_run_its_folder(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], new_name
) -> None:
    around = Datastore.register_folder(workspace, new_name(), os.environ["RUNYARD_HOME"])
    write = "import sys, pathlib\npathlib.Path('outputs/made.txt').write_text('made')"
    run = experiment.submit(with_this_python(project(train=write), arguments=[around.as_mount()]))
    run.wait_for_completion()
    assert "outputs/made.txt" in run.get_file_names()
