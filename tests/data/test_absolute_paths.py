"""Data at a path that a person chose, on this machine: there for the run, gone after it, over nothing of anybody's."""

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
given = pathlib.Path(sys.argv[1])
files = [given] if given.is_file() else sorted(path for path in given.rglob('*') if path.is_file())
print(given, *(path.read_text() for path in files), flush=True)
while len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
"""


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of a yard that the test may kill."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder


@pytest.fixture
def made(tmp_path: Path, new_name: Callable[[], str]) -> Callable[..., Any]:
    """`made('A', 'B')` is a dataset of a file for each of these texts."""

    def make(*texts: str) -> Any:
        folder, below = tmp_path / f"files-{next(_numbers)}", new_name()
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{text}-{number}.txt").write_text(text)
        store = Workspace().get_default_datastore()
        store.upload(str(folder), below, show_progress=False)
        return Dataset.File.from_files((store, f"{below}/{texts[0]}-0.txt" if len(texts) == 1 else below))

    return make


def printed(run: Run) -> str:
    found = run.get_details_with_logs()["logFiles"]
    return next(text for name, text in found.items() if "70_driver_log" in name).strip()


@pytest.mark.parametrize("how", ["as_mount", "as_download"])
def test_each_run_finds_its_own_data_at_the_path_and_nothing_is_there_afterwards(
    how: str, experiment: Experiment, project: Any, made: Any, tmp_path: Path
) -> None:
    there = tmp_path / "deep" / "train"
    for texts in (("A", "B"), ("C", "D")):
        use = getattr(made(*texts).as_named_input("train"), how)(str(there))
        run = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
        run.wait_for_completion()
        assert printed(run) == f"{there} {texts[0]} {texts[1]}"
        eventually(lambda: not there.parent.exists(), "what was made for the run is gone")


def test_one_file_is_in_a_folder_of_that_path(experiment: Experiment, project: Any, made: Any, tmp_path: Path) -> None:
    for how in ("as_mount", "as_download"):
        use = getattr(made("A").as_named_input("train"), how)(str(tmp_path / "train"))
        run = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
        run.wait_for_completion()
        assert printed(run) == f"{tmp_path / 'train'}/A-0.txt A"


def test_a_copy_is_for_writing_and_a_mount_is_the_data_itself(
    experiment: Experiment, project: Any, made: Any, tmp_path: Path
) -> None:
    script = "import pathlib, sys\nassert not pathlib.Path(sys.argv[1], 'mine').exists()\n"
    script += "pathlib.Path(sys.argv[2], 'mine').write_text('x')\n"
    dataset = made("A", "B")
    uses = [
        dataset.as_named_input("one").as_mount(str(tmp_path / "one")),
        dataset.as_named_input("two").as_download(str(tmp_path / "two")),
    ]
    experiment.submit(with_this_python(project(train=script), arguments=uses)).wait_for_completion()
    assert len(dataset.to_path()) == 2
    assert not (tmp_path / "two").exists()


def test_what_is_there_already_is_somebodys_own_and_the_run_is_refused(
    experiment: Experiment, project: Any, made: Any, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "A-0.txt").write_text("my own")
    for how in ("as_mount", "as_download"):
        use = getattr(made("A", "B").as_named_input("train"), how)(str(mine))
        with pytest.raises(UserErrorException, match=f"there is something at {mine} already"):
            experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    assert [path.read_text() for path in mine.iterdir()] == ["my own"]


def test_two_uses_at_one_path_are_refused(experiment: Experiment, project: Any, made: Any, tmp_path: Path) -> None:
    uses = [made("A", "B").as_named_input(name).as_mount(str(tmp_path / "train")) for name in ("one", "two")]
    with pytest.raises(UserErrorException, match="two uses of data are to be at"):
        experiment.submit(with_this_python(project(train=READ), arguments=uses))


def test_a_path_inside_of_data_of_the_run_is_refused_and_nothing_is_written_into_that_data(
    experiment: Experiment, project: Any, made: Any, tmp_path: Path
) -> None:
    dataset, there = made("A", "B"), tmp_path / "train"
    uses = [dataset.as_named_input(there.name + end[1:]).as_mount(f"{there}{end}") for end in ("", "/inner")]
    run = experiment.submit(with_this_python(project(train=READ), arguments=uses))
    run.wait_for_completion(raise_on_error=False)
    assert f"{there}/inner is inside of {there}" in run.get_details()["error"]["error"]["message"]
    assert len(dataset.to_path()) == 2
    eventually(lambda: not there.is_symlink(), "the first link is gone, too")


def test_runs_at_the_same_time_share_a_mount_of_the_same_data_and_no_other(
    experiment: Experiment, project: Any, made: Any, tmp_path: Path
) -> None:
    there, gate, dataset = tmp_path / "train", tmp_path / "gate", made("A", "B")
    use = dataset.as_named_input("train").as_mount(str(there))
    first = experiment.submit(with_this_python(project(train=READ), arguments=[use, str(gate)]))
    eventually(there.is_symlink, "its data is there")
    other = made("C", "D").as_named_input("train").as_mount(str(there))
    refused = experiment.submit(with_this_python(project(train=READ), arguments=[other]))
    refused.wait_for_completion(raise_on_error=False)
    assert f"run {first.id} has data of its own at {there}" in refused.get_details()["error"]["error"]["message"]
    again = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    again.wait_for_completion()
    assert printed(again) == f"{there} A B"
    assert there.is_symlink()
    gate.touch()
    first.wait_for_completion()
    assert printed(first) == f"{there} A B"
    eventually(lambda: not there.is_symlink(), "the last one took it away")


def test_a_killed_yard_leaves_no_path_blocked(own_home: Path, project: Any, made: Any, tmp_path: Path) -> None:
    there, gate = tmp_path / "train", tmp_path / "gate"
    experiment = Experiment(Workspace(), "killed")
    use = made("A", "B").as_named_input("train").as_download(str(there))
    run = experiment.submit(with_this_python(project(train=READ), arguments=[use, str(gate)]))
    eventually(lambda: run.get_status() == "Running", "it runs")
    stop_yard(own_home, signal.SIGKILL)
    gate.touch()
    run.wait_for_completion()
    eventually(lambda: not there.is_symlink(), "the next yard takes it away")
    # as it is left when the yard is killed at the worst moment: a link of a run that nobody knows any more
    stale = next((own_home / "data").glob("spots"))
    use = made("C", "D").as_named_input("train").as_download(str(there))
    there.symlink_to(stale / "of-a-run-that-is-gone" / "tree")
    again = experiment.submit(with_this_python(project(train=READ), arguments=[use]))
    again.wait_for_completion()
    assert printed(again) == f"{there} C D"
