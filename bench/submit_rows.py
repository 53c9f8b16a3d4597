"""From a person's call to the script's first line, and from its last line back to the person."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.peers import present
from bench.place import Place, as_it_is, to_the_end
from bench.row import Goal, Row, Size, not_measured
from bench.turns import in_turns
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
time.sleep(0.15)  # whoever waits is waiting by then
with open(sys.argv[1], "w") as mark:
    mark.write(repr(time.monotonic()))
"""
_REST_S = 0.08


def first_line_by_sdk(place: Place, size: Size) -> Iterator[Row]:
    """Environment and code are known, the yard is warm: what is left is what we cost."""
    folder = place.project("first-line", train=_FIRST_LINE)
    mark = place.root / "first-line.mark"
    experiment = place.experiment("first-line")
    submitting = _submitting(experiment, as_it_is(folder, "train.py", mark), mark)
    bare = _starting([sys.executable, "train.py", str(mark)], folder, mark)
    wanted = [("submitit", "submit_submitit.py")] if size.peers else []
    with present(wanted, place.folder("peers")) as (peers, notes):
        asked = {name: peer.ask for name, peer in peers.items()}
        times = in_turns({"bare": bare, "ours": submitting, **asked}, size.rounds, rest_s=_REST_S)
    yield Row(
        "submit by the SDK to the script's first line, this Python",
        times["ours"],
        ("bare `python script.py`", times["bare"]),
        Goal(2.5, times=True),
        peers={f"{name}, local": times[name] for name in peers},
        notes=tuple(notes),
    )
    if size.downloads:
        yield from _in_a_built_environment(experiment, folder, mark, size)


def first_line_by_command(place: Place, size: Size) -> Iterator[Row]:
    folder = place.project("by-command", train=_FIRST_LINE)
    mark = place.root / "by-command.mark"
    to_the_end(place.experiment("by-command").submit(as_it_is(folder, "train.py", mark)))  # the yard is warm
    command = [str(Path(sys.executable).with_name("runyard")), "run", "train.py", str(mark)]
    times = in_turns(
        {
            "bare": _starting([sys.executable, "train.py", str(mark)], folder, mark),
            "ours": _starting(command, folder, mark),
        },
        size.rounds,
        rest_s=_REST_S,
    )
    yield Row(
        "`runyard run script.py` to the script's first line",
        times["ours"],
        ("bare `python script.py`", times["bare"]),
        Goal(8, times=True),
    )


def end_to_waiting(place: Place, size: Size) -> Iterator[Row]:
    folder = place.project("last-line", train=_LAST_LINE)
    mark = place.root / "last-line.mark"
    experiment = place.experiment("last-line")
    config = as_it_is(folder, "train.py", mark)

    def ours() -> float:
        experiment.submit(config).wait_for_completion()
        return time.monotonic() - _time_in(mark)

    def bare() -> float:
        subprocess.run([sys.executable, "train.py", str(mark)], cwd=folder, check=True)
        return time.monotonic() - _time_in(mark)

    times = in_turns({"bare": bare, "ours": ours}, size.rounds, rest_s=_REST_S)
    yield Row(
        "script's last line to `wait_for_completion` returning",
        times["ours"],
        ("bare process, waited for", times["bare"]),
        Goal(5, times=True),
    )


def _in_a_built_environment(experiment: Experiment, folder: Path, mark: Path, size: Size) -> Iterator[Row]:
    environment = Environment("bench")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["six"])
    config = ScriptRunConfig(str(folder), script="train.py", arguments=[str(mark)], environment=environment)
    what = "submit by the SDK to the script's first line, known environment"
    try:
        to_the_end(experiment.submit(config))
    except RunyardException as error:
        yield not_measured(what, str(error).splitlines()[0])
        return
    python = mark.read_text().split(" ", 1)[1]
    times = in_turns(
        {
            "bare": _starting([python, "train.py", str(mark)], folder, mark),
            "ours": _submitting(experiment, config, mark),
        },
        size.rounds,
        rest_s=_REST_S,
    )
    yield Row(what, times["ours"], ("bare, its Python", times["bare"]), Goal(2.5, times=True))


def _submitting(experiment: Experiment, config: ScriptRunConfig, mark: Path) -> Callable[[], float]:
    def submit() -> float:
        began = time.monotonic()
        run = experiment.submit(config)
        run.wait_for_completion()
        return _time_in(mark) - began

    return submit


def _starting(command: list[str], folder: Path, mark: Path) -> Callable[[], float]:
    def start() -> float:
        began = time.monotonic()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _time_in(mark) - began

    return start


def _time_in(mark: Path) -> float:
    """The clock is the machine's, the same in every process."""
    return float(mark.read_text().split(" ", 1)[0])
