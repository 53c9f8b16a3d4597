"""What every command and every script pays before it does anything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.place import Place
from bench.row import Goal, Row, Sample, Size
from bench.turns import Contender, in_turns, seconds_of


def starting(place: Place, size: Size) -> Iterator[Row]:
    command = str(Path(sys.executable).with_name("runyard"))
    times = in_turns(
        {
            "bare": _running(sys.executable, "-c", "pass"),
            "import": _running(sys.executable, "-c", "import runyard"),
            "run": _running(sys.executable, "-c", "from runyard import Run"),
            "sdk": _running(sys.executable, "-c", "from runyard import Experiment, PyTorch, Workspace"),
            "help": _running(command, "--help"),
        },
        size.rounds,
    )
    bare = ("`python -c pass`", times["bare"])
    yield Row("`import runyard`, beyond bare Python", _beyond(times["import"], times["bare"]), bare, Goal(0.030))
    yield Row(
        "`from runyard import Run`, as scripts do, beyond", _beyond(times["run"], times["bare"]), bare, Goal(0.030)
    )
    yield Row(
        "`from runyard import Experiment, PyTorch, Workspace`, beyond", _beyond(times["sdk"], times["bare"]), bare
    )
    yield Row("`runyard --help`", times["help"], bare, Goal(0.150))


def _running(*command: str) -> Contender:
    return seconds_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _beyond(whole: Sample, bare: Sample) -> float:
    """A start that cannot be told from a bare one has cost nothing, not less than nothing."""
    return max(whole.median - bare.median, 1e-6)
