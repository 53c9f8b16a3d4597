"""Sweeps: children per second, the cost of a policy's decision, and the growth of both with the number of children."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers import start_peers
from bench.rounds import measure_rounds
from bench.row import Goal, Row, Sample, Size
from bench.sandbox import Sandbox, script_config
from runyard import Experiment
from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from runyard.spec.sweep import MAXIMIZE, Policy
from runyard.sweeps.history import History
from runyard.sweeps.policies import reason_to_stop

# The same script in both cases: outside a run, it prints its score.
_TRIVIAL = """\
import sys
from runyard import Run
Run.get_context().log("score", float(sys.argv[2]))
"""
_CONCURRENCY = (2, 4)
_CHILDREN = 24
_PEERS = [("optuna", "sweep_optuna.py"), ("ray[tune]", "sweep_ray.py")]


def children_per_second(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("sweep", train=_TRIVIAL)
    experiment = sandbox.experiment("sweep")
    children = size.scaled(_CHILDREN)
    for concurrency in _CONCURRENCY:
        peer_scripts = (
            [("optuna", "sweep_optuna.py"), ("ray[tune]", "sweep_ray.py")] if size.peers and concurrency == 4 else []
        )
        with start_peers(peer_scripts, sandbox.folder("peers")) as (peers, notes):
            contenders = {
                "bare": lambda n=concurrency: _bare(["train.py"], folder, children, n),
                "empty": lambda n=concurrency: _bare(["-c", "pass"], folder, children, n),
                "ours": lambda n=concurrency: _sweep_rate(experiment, folder, children, n),
                **{name: (lambda peer=peer: peer.measure()) for name, peer in peers.items()},
            }
            rates = measure_rounds(contenders, min(size.rounds, 5))
        yield Row(
            f"sweep children per second, trivial script, {concurrency} concurrent",
            rates["ours"],
            ("the same script, bare", rates["bare"]),
            Goal(0.5, relative=True, at_least=True),
            unit="/s",
            peers={**{name: rates[name] for name in peers}, "empty processes": rates["empty"]},
            notes=tuple(notes),
        )


def growth(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Compare the time per child in a long and in a short sweep, and measure a policy's decisions."""
    folder = sandbox.project("growth", train=_TRIVIAL)
    experiment = sandbox.experiment("growth")
    many = size.scaled(2_000, minimum=10)
    few = [1 / _sweep_rate(experiment, folder, 10, 4) for _ in range(3)]
    started_at = time.monotonic()
    sweep = _submit_sweep(experiment, folder, many, 4)
    sweep.wait_for_completion()
    yield Row(
        f"time per child in a sweep of {many}",
        (time.monotonic() - started_at) / many,
        ("in a sweep of 10", Sample(few)),
        Goal(1.5, relative=True),
    )
    policy = Policy("Bandit", slack_factor=0.1)
    for children in (10, 2000):
        reports = {child: History(MAXIMIZE, (float(child + n) for n in range(20))) for child in range(children)}
        rounds = 200
        started_at = time.perf_counter()
        for _ in range(rounds):
            reason_to_stop(policy, MAXIMIZE, reports, 0, 20)
        yield Row(
            f"one decision of the bandit policy with {children:,} children", (time.perf_counter() - started_at) / rounds
        )


def _sweep_rate(experiment: Experiment, folder: Path, children: int, concurrency: int) -> float:
    started_at = time.monotonic()
    _submit_sweep(experiment, folder, children, concurrency).wait_for_completion()
    return children / (time.monotonic() - started_at)


def _submit_sweep(experiment: Experiment, folder: Path, children: int, concurrency: int) -> Any:
    return experiment.submit(
        HyperDriveConfig(
            GridParameterSampling({"--x": choice(range(children))}),
            "score",
            PrimaryMetricGoal.MAXIMIZE,
            children,
            concurrency,
            run_config=script_config(folder, "train.py"),
        )
    )


def _bare(words: list[str], folder: Path, children: int, concurrency: int) -> float:
    started_at = time.monotonic()
    with ThreadPoolExecutor(concurrency) as pool:
        list(
            pool.map(
                lambda n: subprocess.run(
                    [sys.executable, *words, "--x", str(n)], cwd=folder, check=True, stdout=subprocess.DEVNULL
                ),
                range(children),
            )
        )
    return children / (time.monotonic() - started_at)
