"""Time from submission to the script's first line, and from its last line to the end of the wait."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.peers import start_peers
from bench.rounds import measure_rounds
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox, script_config, wait_for
from runyard import CondaDependencies, Environment, Experiment, ScriptRunConfig
from runyard.errors import RunyardException

_FIRST_LINE = """\
import time; now = time.monotonic()
import sys
with open(sys.argv[1], "w") as mark:
    mark.write(f"{now!r} {sys.executable}")
"""
_LAST_LINE = """\
import sys, time
time.sleep(0.15)  # until then, wait_for_completion is waiting
with open(sys.argv[1], "w") as mark:
    mark.write(repr(time.monotonic()))
"""
_REST_S = 0.08


def first_line_by_sdk(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Measure the pure overhead: environment and code are unchanged, and the yard is running."""
    folder = sandbox.project("first-line", train=_FIRST_LINE)
    mark = sandbox.root / "first-line.mark"
    experiment = sandbox.experiment("first-line")
    submitting = _submit_contender(experiment, script_config(folder, "train.py", mark), mark)
    bare = _command_contender([sys.executable, "train.py", str(mark)], folder, mark)
    peer_scripts = [("submitit", "submit_submitit.py")] if size.peers else []
    with start_peers(peer_scripts, sandbox.folder("peers")) as (peers, notes):
        measurements = {name: peer.measure for name, peer in peers.items()}
        times = measure_rounds({"bare": bare, "ours": submitting, **measurements}, size.rounds, rest_s=_REST_S)
    yield Row(
        "submit with the SDK to the script's first line, same Python",
        times["ours"],
        ("bare `python script.py`", times["bare"]),
        Goal(2.5, relative=True),
        peers={f"{name}, local": times[name] for name in peers},
        notes=tuple(notes),
    )
    if size.downloads:
        yield from _with_built_environment(experiment, folder, mark, size)


def first_line_by_command(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("by-command", train=_FIRST_LINE)
    mark = sandbox.root / "by-command.mark"
    wait_for(sandbox.experiment("by-command").submit(script_config(folder, "train.py", mark)))  # starts the yard
    command = [str(Path(sys.executable).with_name("runyard")), "run", "train.py", str(mark)]
    times = measure_rounds(
        {
            "bare": _command_contender([sys.executable, "train.py", str(mark)], folder, mark),
            "ours": _command_contender(command, folder, mark),
        },
        size.rounds,
        rest_s=_REST_S,
    )
    yield Row(
        "`runyard run script.py` to the script's first line",
        times["ours"],
        ("bare `python script.py`", times["bare"]),
        Goal(8, relative=True),
    )


def end_of_wait(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("last-line", train=_LAST_LINE)
    mark = sandbox.root / "last-line.mark"
    experiment = sandbox.experiment("last-line")
    config = script_config(folder, "train.py", mark)

    def ours() -> float:
        experiment.submit(config).wait_for_completion()
        return time.monotonic() - _read_time(mark)

    def bare() -> float:
        subprocess.run([sys.executable, "train.py", str(mark)], cwd=folder, check=True)
        return time.monotonic() - _read_time(mark)

    times = measure_rounds({"bare": bare, "ours": ours}, size.rounds, rest_s=_REST_S)
    yield Row(
        "script's last line to the return of `wait_for_completion`",
        times["ours"],
        ("bare process and wait", times["bare"]),
        Goal(5, relative=True),
    )


def _with_built_environment(experiment: Experiment, folder: Path, mark: Path, size: Size) -> Iterator[Row]:
    environment = Environment("bench")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["six"])
    config = ScriptRunConfig(str(folder), script="train.py", arguments=[str(mark)], environment=environment)
    title = "submit with the SDK to the script's first line, existing environment"
    try:
        wait_for(experiment.submit(config))
    except RunyardException as error:
        yield not_measured(title, str(error).splitlines()[0])
        return
    python = mark.read_text().split(" ", 1)[1]
    times = measure_rounds(
        {
            "bare": _command_contender([python, "train.py", str(mark)], folder, mark),
            "ours": _submit_contender(experiment, config, mark),
        },
        size.rounds,
        rest_s=_REST_S,
    )
    yield Row(title, times["ours"], ("bare script, same environment", times["bare"]), Goal(2.5, relative=True))


def _submit_contender(experiment: Experiment, config: ScriptRunConfig, mark: Path) -> Callable[[], float]:
    def submit() -> float:
        started_at = time.monotonic()
        run = experiment.submit(config)
        run.wait_for_completion()
        return _read_time(mark) - started_at

    return submit


def _command_contender(command: list[str], folder: Path, mark: Path) -> Callable[[], float]:
    def start() -> float:
        started_at = time.monotonic()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _read_time(mark) - started_at

    return start


def _read_time(mark: Path) -> float:
    """Return the monotonic time in the file; the clock is the same in all processes."""
    return float(mark.read_text().split(" ", 1)[0])
