"""Startup time of commands and scripts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.rounds import Contender, measure_rounds, timed
from bench.row import Goal, Row, Sample, Size
from bench.sandbox import Sandbox


def startup(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    command = str(Path(sys.executable).with_name("runyard"))
    times = measure_rounds(
        {
            "bare": _run_command(sys.executable, "-c", "pass"),
            "import": _run_command(sys.executable, "-c", "import runyard"),
            "run": _run_command(sys.executable, "-c", "from runyard import Run"),
            "sdk": _run_command(sys.executable, "-c", "from runyard import Experiment, PyTorch, Workspace"),
            "help": _run_command(command, "--help"),
        },
        size.rounds,
    )
    bare = ("`python -c pass`", times["bare"])
    yield Row(
        "`import runyard`, time added to a bare Python", _added_time(times["import"], times["bare"]), bare, Goal(0.030)
    )
    yield Row(
        "`from runyard import Run`, as in scripts, time added",
        _added_time(times["run"], times["bare"]),
        bare,
        Goal(0.030),
    )
    yield Row(
        "`from runyard import Experiment, PyTorch, Workspace`, time added",
        _added_time(times["sdk"], times["bare"]),
        bare,
    )
    yield Row("`runyard --help`", times["help"], bare, Goal(0.150))


def _run_command(*command: str) -> Contender:
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _added_time(import_time: Sample, bare: Sample) -> float:
    """Return the difference of the medians, which noise must not make negative."""
    return max(import_time.median - bare.median, 1e-6)
