"""`runyard watch wandb` imports what real W&B processes write, while they are running."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from import_support import points, runs_of, tracker_variables

from cli_support import CommandLine
from runyard import Run, Workspace
from support import eventually as wait_for

TRAIN = """
import sys
import wandb

run = wandb.init(project=sys.argv[1], name=sys.argv[2], config={"lr": 0.1})
print("started", flush=True)
for line in sys.stdin:  # one step for each line
    step = int(line)
    run.log({"loss": step / 4, "odd": float("nan")}, step=step, commit=True)
run.finish()
"""


def eventually(condition: Callable[[], object], description: str) -> None:
    """W&B takes seconds to start, more on a slow machine."""
    wait_for(condition, description, within_s=240)


class Training:
    """A W&B process that logs the steps that it is sent."""

    def __init__(self, python: str, folder: Path, project: str, name: str) -> None:
        self.process = subprocess.Popen(
            [python, "-c", TRAIN, project, name],
            cwd=folder,
            env=tracker_variables(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def log(self, steps: range) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{step}\n" for step in steps))
        self.process.stdin.flush()

    def finish(self) -> None:
        self.process.communicate(timeout=120)
        assert self.process.returncode == 0


@pytest.fixture
def training(tracker_python: str, tmp_path: Path) -> Iterator[Callable[[str, str], Training]]:
    processes: list[Training] = []

    def start(project: str, name: str) -> Training:
        processes.append(Training(tracker_python, tmp_path, project, name))
        return processes[-1]

    yield start
    for started in processes:
        started.process.kill()  # of a failed test
        started.process.communicate()


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(home, tmp_path)
    yield command_line
    command_line.close()


def watch(cli: CommandLine) -> subprocess.Popen[bytes]:
    return cli.start("watch", "wandb", "wandb")


def stop(watcher: subprocess.Popen[bytes], number: int = signal.SIGINT) -> str:
    watcher.send_signal(number)
    out, err = watcher.communicate(timeout=60)
    assert (watcher.returncode, out) == (0, b"")
    return err.decode()


def stored(run: Run) -> list[tuple[int, float]]:
    return [(step, value) for step, _, value in points(run, "loss")] if "loss" in run.get_metrics() else []


def expected(count: int) -> list[tuple[int, float]]:
    return [(step, step / 4) for step in range(count)]


@pytest.mark.real
@pytest.mark.timeout(900)  # several W&B processes start
def test_a_running_run_appears_and_every_point_is_stored_once(
    workspace: Workspace, cli: CommandLine, training: Callable[[str, str], Training], tmp_path: Path
) -> None:
    (tmp_path / "wandb").mkdir()
    watcher = watch(cli)
    first = training("watched", "first")
    first.log(range(10))
    eventually(lambda: "first" in runs_of(workspace, "watched"), "the run is in the yard")
    run = runs_of(workspace, "watched")["first"]
    eventually(lambda: stored(run) == expected(10), "its points are in the yard")
    assert (run.get_status(), run.get_params()) == ("Running", {"lr": "0.1"})

    watcher.kill()  # nothing is known about its end
    watcher.communicate()
    first.log(range(10, 20))
    second = training("watched", "second")
    watcher = watch(cli)
    eventually(lambda: stored(run) == expected(20), "the second watcher continues")
    first.log(range(20, 25))
    eventually(lambda: stored(run) == expected(25), "it follows the run")
    text = stop(watcher)
    assert "continue with  runyard watch wandb wandb" in text
    assert run.get_status() == "Running"

    watcher = watch(cli)
    first.log(range(25, 30))
    second.log(range(5))
    first.finish()
    second.finish()
    eventually(lambda: "second" in runs_of(workspace, "watched"), "the second run is in the yard")
    other = runs_of(workspace, "watched")["second"]
    for ended in (run, other):
        eventually(lambda ended=ended: ended.get_status() == "Completed", "the end is in the yard")  # type: ignore[misc]
    assert (stored(run), stored(other)) == (expected(30), expected(5))
    assert "requirements.txt" in other.get_file_names()
    text = stop(watcher, signal.SIGTERM)
    assert text.splitlines()[-1].startswith("stopped: 2 runs")


def test_a_folder_without_runs_is_watched(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    watcher = watch(cli)
    assert watcher.stderr is not None
    assert watcher.stderr.readline() == b"watching wandb; press Ctrl-C to stop\n"
    assert watcher.stderr.readline() == b"no runs yet\n"
    assert stop(watcher) == "stopped: no runs yet\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wandb", "missing"), "'missing' does not exist"),
        (("wandb", "file"), "'file' is not a folder"),
        (("mlflow", "."), "source must be wandb, got 'mlflow'"),
    ],
)
def test_invalid_arguments_are_refused(
    cli: CommandLine, tmp_path: Path, arguments: tuple[str, str], message: str
) -> None:
    (tmp_path / "file").touch()
    result = cli("watch", *arguments)
    assert result.code == 1
    assert message in result.err
