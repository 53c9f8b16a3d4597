"""Data at absolute paths on this machine: a link during the run, which never replaces existing files."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import Dataset, Experiment, Run, Workspace
from runyard.errors import UserErrorException
from support import a_home, eventually, stop_yard, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("data")]
_numbers = itertools.count(1)

READ = """
import pathlib, sys, time
data = pathlib.Path(sys.argv[1])
files = [data] if data.is_file() else sorted(path for path in data.rglob('*') if path.is_file())
print(data, *(path.read_text() for path in files), flush=True)
while len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
"""


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a yard that the test may kill."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


@pytest.fixture
def create_dataset(tmp_path: Path, new_name: Callable[[], str]) -> Callable[..., Any]:
    """`create_dataset('A', 'B')` returns a dataset with one file for each text."""

    def create(*texts: str) -> Any:
        folder, prefix = tmp_path / f"files-{next(_numbers)}", new_name()
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{text}-{number}.txt").write_text(text)
        store = Workspace().get_default_datastore()
        store.upload(str(folder), prefix, show_progress=False)
        return Dataset.File.from_files((store, f"{prefix}/{texts[0]}-0.txt" if len(texts) == 1 else prefix))

    return create


def output_of(run: Run) -> str:
    logs = run.get_details_with_logs()["logFiles"]
    return next(text for name, text in logs.items() if "70_driver_log" in name).strip()


@pytest.mark.parametrize("method", ["as_mount", "as_download"])
def test_each_run_has_its_data_at_the_path_until_it_ends(
    method: str, experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "train"
    for texts in (("A", "B"), ("C", "D")):
        use = getattr(create_dataset(*texts).as_named_input("train"), method)(str(path))
        run = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
        run.wait_for_completion()
        assert output_of(run) == f"{path} {texts[0]} {texts[1]}"
        eventually(lambda: not path.parent.exists(), "the link and its folder are removed")


def test_a_single_file_is_in_a_folder_at_the_path(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    for method in ("as_mount", "as_download"):
        use = getattr(create_dataset("A").as_named_input("train"), method)(str(tmp_path / "train"))
        run = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
        run.wait_for_completion()
        assert output_of(run) == f"{tmp_path / 'train'}/A-0.txt A"


def test_a_download_is_writable_and_separate_from_a_mount(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    script = "import pathlib, sys\nassert not pathlib.Path(sys.argv[1], 'mine').exists()\n"
    script += "pathlib.Path(sys.argv[2], 'mine').write_text('x')\n"
    dataset = create_dataset("A", "B")
    uses = [
        dataset.as_named_input("one").as_mount(str(tmp_path / "one")),
        dataset.as_named_input("two").as_download(str(tmp_path / "two")),
    ]
    experiment.submit(with_this_python(project(train=script), arguments=uses)).wait_for_completion()
    assert len(dataset.to_path()) == 2
    assert not (tmp_path / "two").exists()


def test_an_existing_path_is_not_replaced(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    existing = tmp_path / "existing"
    existing.mkdir()
    (existing / "A-0.txt").write_text("my own")
    for method in ("as_mount", "as_download"):
        use = getattr(create_dataset("A", "B").as_named_input("train"), method)(str(existing))
        with pytest.raises(UserErrorException, match=f"{existing} exists already"):
            experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    assert [path.read_text() for path in existing.iterdir()] == ["my own"]


def test_two_uses_at_one_path_are_refused(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    uses = [create_dataset("A", "B").as_named_input(name).as_mount(str(tmp_path / "train")) for name in ("one", "two")]
    with pytest.raises(UserErrorException, match="two uses of data have the path"):
        experiment.submit(with_this_python(project(train=READ), arguments=uses))


def test_a_path_inside_other_mounted_data_is_refused(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    dataset, path = create_dataset("A", "B"), tmp_path / "train"
    uses = [dataset.as_named_input(path.name + end[1:]).as_mount(f"{path}{end}") for end in ("", "/inner")]
    run = experiment.submit(with_this_python(project(train=READ), arguments=uses))
    run.wait_for_completion(raise_on_error=False)
    assert f"{path}/inner is inside {path}" in run.get_details()["error"]["error"]["message"]
    assert len(dataset.to_path()) == 2
    eventually(lambda: not path.is_symlink(), "the first link is removed")


def test_concurrent_runs_share_a_link_to_the_same_data(
    experiment: Experiment, project: Any, create_dataset: Any, tmp_path: Path
) -> None:
    path, gate, dataset = tmp_path / "train", tmp_path / "gate", create_dataset("A", "B")
    use = dataset.as_named_input("train").as_mount(str(path))
    first = experiment.submit(with_this_python(project(train=READ), arguments=[use, str(gate)]))
    eventually(path.is_symlink, "the link exists")
    other = create_dataset("C", "D").as_named_input("train").as_mount(str(path))
    refused = experiment.submit(with_this_python(project(train=READ), arguments=[other]))
    refused.wait_for_completion(raise_on_error=False)
    assert f"run {first.id} has mounted other data at {path}" in refused.get_details()["error"]["error"]["message"]
    again = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    again.wait_for_completion()
    assert output_of(again) == f"{path} A B"
    assert path.is_symlink()
    gate.touch()
    first.wait_for_completion()
    assert output_of(first) == f"{path} A B"
    eventually(lambda: not path.is_symlink(), "the last run removes the link")


def test_links_of_a_killed_yard_are_removed(own_home: Path, project: Any, create_dataset: Any, tmp_path: Path) -> None:
    path, gate = tmp_path / "train", tmp_path / "gate"
    experiment = Experiment(Workspace(), "killed")
    use = create_dataset("A", "B").as_named_input("train").as_download(str(path))
    run = experiment.submit(with_this_python(project(train=READ), arguments=[use, str(gate)]))
    eventually(lambda: run.get_status() == "Running", "the run is running")
    stop_yard(own_home, signal.SIGKILL)
    gate.touch()
    run.wait_for_completion()
    eventually(lambda: not path.is_symlink(), "the next yard removes the link")
    # simulates a yard that was killed before it recorded the link: the link of an unknown run
    stale = next((own_home / "data").glob("spots"))
    use = create_dataset("C", "D").as_named_input("train").as_download(str(path))
    path.symlink_to(stale / "of-an-unknown-run" / "tree")
    again = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    again.wait_for_completion()
    assert output_of(again) == f"{path} C D"
