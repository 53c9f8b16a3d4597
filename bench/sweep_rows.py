"""Sweeps: children per second, what a policy's decision costs, and how the cost of a child grows with their number."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers import present
from bench.place import Place, as_it_is
from bench.row import Goal, Row, Sample, Size
from bench.turns import in_turns
from runyard import Experiment
from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from runyard.spec.sweep import MAXIMIZE, Policy
from runyard.sweeps.history import History
from runyard.sweeps.policies import reason_to_stop

# The same on both sides, as it is: by itself, it prints its score.
_TRIVIAL = """\
import sys
from runyard import Run
Run.get_context().log("score", float(sys.argv[2]))
"""
_AT_ONCE = (2, 4)
_CHILDREN = 24


def children_per_second(place: Place, size: Size) -> Iterator[Row]:
    folder = place.project("sweep", train=_TRIVIAL)
    experiment = place.experiment("sweep")
    children = size.of(_CHILDREN)
    for at_once in _AT_ONCE:
        wanted = [("optuna", "sweep_optuna.py"), ("ray[tune]", "sweep_ray.py")] if size.peers and at_once == 4 else []
        with present(wanted, place.folder("peers")) as (peers, notes):
            contenders = {
                "bare": lambda n=at_once: _bare(["train.py"], folder, children, n),
                "empty": lambda n=at_once: _bare(["-c", "pass"], folder, children, n),
                "ours": lambda n=at_once: _ours(experiment, folder, children, n),
                **{name: (lambda peer=peer: peer.ask()) for name, peer in peers.items()},
            }
            rates = in_turns(contenders, min(size.rounds, 5))
        yield Row(
            f"children of a sweep per second, a trivial script, {at_once} at a time",
            rates["ours"],
            ("the same script, bare", rates["bare"]),
            Goal(0.5, times=True, at_least=True),
            unit="/s",
            peers={**{name: rates[name] for name in peers}, "empty processes, which log nothing": rates["empty"]},
            notes=tuple(notes),
        )


def growth(place: Place, size: Size) -> Iterator[Row]:
    """A child among the last of a long sweep against one of a short sweep, and a policy's decision among many."""
    folder = place.project("growth", train=_TRIVIAL)
    experiment = place.experiment("growth")
    many = size.of(2_000, least=10)
    few = [1 / _ours(experiment, folder, 10, 4) for _ in range(3)]
    began = time.monotonic()
    long = _submitted(experiment, folder, many, 4)
    long.wait_for_completion()
    yield Row(
        f"a child of a sweep of {many}, from its start to the next one's",
        (time.monotonic() - began) / many,
        ("of a sweep of 10", Sample(few)),
        Goal(1.5, times=True),
    )
    policy = Policy("Bandit", slack_factor=0.1)
    for children in (10, 2000):
        reports = {child: History(MAXIMIZE, (float(child + n) for n in range(20))) for child in range(children)}
        rounds = 200
        began = time.perf_counter()
        for _ in range(rounds):
            reason_to_stop(policy, MAXIMIZE, reports, 0, 20)
        yield Row(
            f"a decision of the bandit policy among {children:,} children", (time.perf_counter() - began) / rounds
        )


def _ours(experiment: Experiment, folder: Path, children: int, at_once: int) -> float:
    began = time.monotonic()
    _submitted(experiment, folder, children, at_once).wait_for_completion()
    return children / (time.monotonic() - began)


def _submitted(experiment: Experiment, folder: Path, children: int, at_once: int) -> Any:
    return experiment.submit(
        HyperDriveConfig(
            GridParameterSampling({"--x": choice(range(children))}),
            "score",
            PrimaryMetricGoal.MAXIMIZE,
            children,
            at_once,
            run_config=as_it_is(folder, "train.py"),
        )
    )


def _bare(words: list[str], folder: Path, children: int, at_once: int) -> float:
    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        list(
            pool.map(
                lambda n: subprocess.run(
                    [sys.executable, *words, "--x", str(n)], cwd=folder, check=True, stdout=subprocess.DEVNULL
                ),
                range(children),
            )
        )
    return children / (time.monotonic() - began)
