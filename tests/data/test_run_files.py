"""The stored files of runs as a read-only datastore."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Dataset, Datastore, Experiment, Run, Workspace
from runyard.errors import UserErrorException
from support import with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]

WRITE = """
import os, pathlib
os.makedirs('outputs/model')
pathlib.Path('outputs/model/weights').write_text('seven')
pathlib.Path('outputs/notes.txt').write_text('good')
"""
READ = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
files = [folder] if folder.is_file() else sorted(p for p in folder.rglob('*') if p.is_file())
for path in files:
    print(path.name, path.read_text())
if sys.argv[2:]:
    (folder / 'mine').write_text('a copy is mine')
"""


@pytest.fixture
def earlier(experiment: Experiment, project: Callable[..., Path]) -> Run:
    run = experiment.submit(with_this_python(project(train=WRITE)))
    run.wait_for_completion(raise_on_error=True)
    return run


@pytest.fixture
def store(workspace: Workspace):
    return Datastore(workspace, "workspaceartifactstore")


def outputs_of(run: Run) -> str:
    return f"ExperimentRun/dcid.{run.id}/outputs"


def printed_by(run: Run, tmp_path: Path) -> list[str]:
    run.wait_for_completion(raise_on_error=True)
    run.download_file("azureml-logs/70_driver_log.txt", str(tmp_path / "log"))
    return (tmp_path / "log").read_text().split("\n")[:-1]


def test_files_of_a_run_can_be_listed_and_downloaded(earlier: Run, store, tmp_path: Path) -> None:
    path = outputs_of(earlier)
    assert store.list(path) == [f"{path}/model/weights", f"{path}/notes.txt"]
    assert store.list(f"{path}/model", recursive=False) == [f"{path}/model/weights"]
    assert store.list("ExperimentRun/dcid.unknown") == store.list("elsewhere") == []
    assert store.download(str(tmp_path / "down"), prefix=path, show_progress=False) == 2
    assert (tmp_path / "down" / path / "model" / "weights").read_text() == "seven"


@pytest.mark.parametrize("method", ["as_mount", "as_download"])
def test_another_run_reads_them_with_their_names(
    experiment: Experiment, project: Callable[..., Path], earlier: Run, store, method: str, tmp_path: Path
) -> None:
    script = project(train=READ)
    folder = getattr(store.path(outputs_of(earlier)), method)()
    file = getattr(store.path(f"{outputs_of(earlier)}/model/weights"), method)()
    of_folder = experiment.submit(with_this_python(script, arguments=[folder]))
    of_file = experiment.submit(with_this_python(script, arguments=[file]))
    assert printed_by(of_folder, tmp_path) == ["weights seven", "notes.txt good"]
    assert printed_by(of_file, tmp_path) == ["weights seven"]


def test_writing_to_a_download_does_not_change_the_stored_files(
    experiment: Experiment, project: Callable[..., Path], earlier: Run, store, tmp_path: Path
) -> None:
    copy = store.path(outputs_of(earlier)).as_download()
    printed_by(experiment.submit(with_this_python(project(train=READ), arguments=[copy, "write"])), tmp_path)
    assert store.list(outputs_of(earlier)) == [f"{outputs_of(earlier)}/{n}" for n in ("model/weights", "notes.txt")]


@pytest.mark.parametrize("method", ["as_mount", "as_download"])
def test_unusual_names_are_kept(
    experiment: Experiment, project: Callable[..., Path], store, method: str, tmp_path: Path
) -> None:
    names = ["back\\slash.txt", "new\nline.txt", "sub dir/ünï 日本?*.txt", "empty"]
    script = f"""
        import pathlib
        for name in {names!r}:
            path = pathlib.Path('outputs', name)
            path.parent.mkdir(exist_ok=True)
            path.write_text('' if name == 'empty' else name)
    """
    odd = experiment.submit(with_this_python(project(train=textwrap.dedent(script))))
    odd.wait_for_completion(raise_on_error=True)
    look = "import pathlib, sys\nfolder = pathlib.Path(sys.argv[1])\n"
    look += "print(sorted(str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file()))\n"
    use = getattr(store.path(outputs_of(odd)), method)()
    run = experiment.submit(with_this_python(project(train=look), arguments=[use]))
    assert printed_by(run, tmp_path) == [str(sorted(names))]


@pytest.mark.parametrize("method", ["as_mount", "as_download"])
def test_a_damaged_file_is_not_used(
    home: Path, experiment: Experiment, project: Callable[..., Path], store, method: str, tmp_path: Path
) -> None:
    text = f"left for {method}"
    writing = f"import pathlib\npathlib.Path('outputs/model').write_text({text!r})\n"
    earlier = experiment.submit(with_this_python(project(train=writing)))
    earlier.wait_for_completion(raise_on_error=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    content = home / "artifacts" / digest[:2] / digest[2:]
    content.chmod(0o600)
    content.write_text(text.replace("left", "lost"))
    use = getattr(store.path(outputs_of(earlier)), method)()
    run = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    assert "model is damaged: its content is not what the run stored" in run.get_details()["error"]["message"]
    content.write_text(text)  # restored
    assert printed_by(experiment.submit(with_this_python(project(train=READ), arguments=[use])), tmp_path) == [
        f"model {text}"
    ]


def test_lineage_connects_both_runs(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], earlier: Run, store
) -> None:
    config = with_this_python(project(train=READ), arguments=[store.path(outputs_of(earlier), "former").as_mount()])
    later = experiment.submit(config)
    later.wait_for_completion(raise_on_error=True)
    node = f"data:workspaceartifactstore/{outputs_of(earlier)}"
    for run in (earlier, later):
        edges = workspace.connection.get("/api/lineage", run=run.id)["edges"]
        assert {(edge["source"], edge["target"], edge["kind"]) for edge in edges} == {
            (f"run:{earlier.id}", node, "wrote"),
            (node, f"run:{later.id}", "used"),
        }


def test_a_file_and_a_folder_of_one_name_are_refused(
    experiment: Experiment, project: Callable[..., Path], store, tmp_path: Path
) -> None:
    script = "import os\nfrom runyard import Run\nos.makedirs('outputs/model')\nopen('outputs/model/w', 'w').close()\n"
    script += "open('single', 'w').close()\nRun.get_context().upload_file('outputs/model', 'single')\n"
    both = experiment.submit(with_this_python(project(train=script)))
    both.wait_for_completion(raise_on_error=True)
    message = (
        f"'{outputs_of(both)}/model' is a file in the datastore, but also the folder of '{outputs_of(both)}/model/w'"
    )
    with pytest.raises(UserErrorException, match=re.escape(message)):
        store.download(str(tmp_path / "down"), prefix=outputs_of(both), show_progress=False)
    copy = store.path(outputs_of(both)).as_download()
    run = experiment.submit(with_this_python(project(train=READ), arguments=[copy]))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    assert message in run.get_details()["error"]["message"]


def test_stored_files_can_be_a_dataset(earlier: Run, store, tmp_path: Path) -> None:
    paths = Dataset.File.from_files((store, f"{outputs_of(earlier)}/*.txt")).download(str(tmp_path / "set"))
    assert [Path(path).read_text() for path in paths] == ["good"]


def test_missing_files_are_refused_before_the_run_is_created(
    experiment: Experiment, project: Callable[..., Path], store
) -> None:
    missing = store.path("ExperimentRun/dcid.unknown/outputs").as_mount()
    with pytest.raises(UserErrorException, match="no files at 'ExperimentRun"):
        experiment.submit(with_this_python(project(train=READ), arguments=[missing]))


def test_the_datastore_is_read_only(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], earlier: Run, store, tmp_path: Path
) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "x").write_text("x")
    upload = with_this_python(project(train=READ), arguments=[store.path("x").as_upload()])
    for write in (
        lambda: store.upload(str(tmp_path / "up"), "x", show_progress=False),
        lambda: store.delete(outputs_of(earlier)),
        lambda: store.set_as_default(),
        lambda: experiment.submit(upload),
    ):
        with pytest.raises(UserErrorException, match="read-only"):
            write()
    for change in (
        lambda: store.unregister(),
        lambda: Datastore.register_folder(workspace, "workspaceartifactstore", tmp_path),
    ):
        with pytest.raises(UserErrorException, match="built-in datastore"):
            change()
    assert store.list(outputs_of(earlier))
