"""A lost or damaged database: the yard refuses to start, and `runyard restore` brings the runs back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_support import CommandLine
from runyard import Experiment, Run, Workspace
from runyard.client.connection import Connection
from runyard.errors import StoreCorrupted
from runyard.store.backups import back_up, list_backups
from support import eventually, stop_yard, with_this_python, yard_pid

pytestmark = pytest.mark.real

TRAIN = """
from pathlib import Path
from runyard import Run
run = Run.get_context()
for step in range(20):
    run.log("loss", 1 / (step + 1))
run.tag("team", "vision")
Path("outputs/model.bin").write_bytes(b"weights" * 100)
"""


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(home, tmp_path)
    yield command_line
    command_line.close()


def train(experiment: Experiment, folder: Path) -> str:
    run = experiment.submit(with_this_python(folder, arguments=["--lr", "0.1"]))
    run.wait_for_completion()
    run_folder = experiment.workspace.home / "runs" / run.id
    eventually(lambda: json.loads((run_folder / "run.json").read_bytes())["run"]["end"], "the description is written")
    return str(run.id)


@pytest.mark.parametrize("loss", ["deleted", "empty", "no database"])
def test_a_yard_without_its_database_does_not_start(home: Path, cli: CommandLine, loss: str) -> None:
    cli("runs")
    cli("yard", "stop")
    (home / "yard.db").unlink()
    if loss != "deleted":
        (home / "yard.db").write_bytes(b"" if loss == "empty" else b"no database" * 1000)
    result = cli("runs")
    assert result.code == 1
    assert str(home / "yard.db") in result.err
    assert "runyard restore" in result.err
    with pytest.raises(StoreCorrupted):
        Workspace().connection.get("/api/health")
    assert yard_pid(home) is None


def test_a_backup_and_the_runs_since_then_are_restored(
    home: Path, cli: CommandLine, experiment: Experiment, project
) -> None:
    folder = project(train=TRAIN)
    first = train(experiment, folder)
    interactive = experiment.start_logging(snapshot_directory=None)  # ends after the backup
    stop_yard(home)
    backup = back_up(home / "yard.db")
    interactive.log("accuracy", 0.5)
    interactive.complete()
    second = train(experiment, folder)
    before = {run_id: experiment.workspace.connection.get(f"/api/runs/{run_id}") for run_id in (first, second)}
    stop_yard(home)
    (home / "yard.db").unlink()
    for sidecar in home.glob("yard.db-*"):
        sidecar.unlink()
    (home / "runs" / "unknown").mkdir()

    listing = cli("restore", "--list")
    assert backup.name in listing.text
    assert cli("restore").code == 1  # without --yes and without a terminal
    result = cli("restore", "--yes", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert report["backup"]["name"] == backup.name
    assert report["added"] == [second]
    assert report["updated"] == [interactive.id]
    assert report["not_added"] == [["unknown", "its folder has no description of it"]]

    connection = Connection(home)
    for run_id, view in before.items():
        restored = connection.get(f"/api/runs/{run_id}")
        changing = ("version", "number")
        assert {k: v for k, v in restored.items() if k not in changing} == {
            k: v for k, v in view.items() if k not in changing
        }
        assert Run(experiment, run_id).get_metrics()["loss"] == [1 / (step + 1) for step in range(20)]
        assert connection.read(f"/api/runs/{run_id}/files/outputs/model.bin") == b"weights" * 100
    assert connection.get(f"/api/runs/{interactive.id}")["status"] == "Completed"
    assert cli("fsck").code == 0


def test_a_running_script_survives_the_loss_of_the_database(
    home: Path, cli: CommandLine, experiment: Experiment, project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    folder = project(train=f"import time, os\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n{TRAIN}")
    run = experiment.submit(with_this_python(folder))
    eventually(lambda: run.get_status() == "Running", "the script runs")
    stop_yard(home)
    (home / "yard.db").rename(tmp_path / "lost.db")
    for sidecar in home.glob("yard.db-*"):
        sidecar.unlink()
    assert cli("restore", "--empty", "--yes").code == 0
    go.touch()
    assert Connection(home).get(f"/api/runs/{run.id}")["run_id"] == run.id
    run.wait_for_completion()
    assert run.get_status() == "Completed"
    assert run.get_metrics()["loss"][-1] == 1 / 20
    assert "outputs/model.bin" in run.get_file_names()


def test_a_database_that_is_removed_from_a_running_yard_is_saved(home: Path, cli: CommandLine) -> None:
    with Experiment(Workspace(), "digits").start_logging(snapshot_directory=None) as run:
        pass
    for path in home.glob("yard.db*"):
        path.unlink()
    eventually(lambda: yard_pid(home) is None, "the yard closes")
    assert not (home / "yard.db").exists()
    assert cli("restore", "--list").text.count("ok") == 1
    assert "backup" in cli("doctor").text
    assert cli("restore", "--yes").code == 0
    assert run.id in cli("runs").text


def test_restoring_replaces_a_damaged_database_and_keeps_it(home: Path, cli: CommandLine) -> None:
    with Experiment(Workspace(), "digits").start_logging(snapshot_directory=None) as run:
        pass
    stop_yard(home)
    good, bad = back_up(home / "yard.db"), home / "backups" / "yard-20990101T000000Z-0009.db"
    shutil.copy(good.path, bad)
    content = bytearray(bad.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    bad.write_bytes(content)
    (home / "yard.db").write_bytes(b"broken" * 1000)
    assert cli("restore", bad.name, "--yes").code == 1
    result = cli("restore", "--yes")
    assert result.code == 0, result.err
    assert bad.name in result.err  # skipped
    (moved,) = home.glob("yard.db.replaced-*")
    assert moved.read_bytes() == b"broken" * 1000
    assert run.id in cli("runs").text


def test_a_running_yard_is_not_restored(home: Path, cli: CommandLine) -> None:
    cli("runs")
    pid = yard_pid(home)
    for arguments in (("restore", "--yes"), ("restore", "--empty", "--yes")):
        result = cli(*arguments)
        assert (result.code, str(pid) in result.err, "yard stop" in result.err) == (1, True, True)
    assert yard_pid(home) == pid


def test_restoring_without_a_backup_says_so(home: Path, cli: CommandLine) -> None:
    cli("runs")
    cli("yard", "stop")
    assert "no backups" in cli("restore", "--list").err
    result = cli("restore", "--yes")
    assert result.code == 1
    assert "--empty" in result.err
    assert "no backup 'x'" in cli("restore", "x", "--yes").err


def test_a_backup_of_an_empty_yard_does_not_replace_one_with_runs(home: Path, cli: CommandLine) -> None:
    with Experiment(Workspace(), "digits").start_logging(snapshot_directory=None):
        pass
    stop_yard(home)
    good = back_up(home / "yard.db")
    with sqlite3.connect(home / "yard.db") as connection:
        connection.execute("DELETE FROM runs")
    with pytest.raises(StoreCorrupted):
        back_up(home / "yard.db")
    assert [backup.path for backup in list_backups(home / "yard.db")] == [good.path]
