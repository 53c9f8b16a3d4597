"""One sweep, as asked for: what to vary, how to choose, when to give up on a child, how much in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

RANDOM, GRID, BAYESIAN, SOBOL, POPULATION = "Random", "Grid", "BayesianOptimization", "Sobol", "Population"
MAXIMIZE, MINIMIZE = "maximize", "minimize"


@dataclass(frozen=True)
class Population:
    """Of a sampling by generations."""

    size: int
    replaced: float = 0.25  # the share of a generation, the weakest, that goes on from better ones
    resampled: float = 0.25  # how likely each of their values is drawn anew rather than moved a little


@dataclass(frozen=True)
class Sampling:
    name: str  # one of the five above
    space: dict[str, Any]  # name -> expression; see spec/space.py
    seed: int = 0
    population: Optional[Population] = None


@dataclass(frozen=True)
class Policy:
    """Its name is the class of the SDK: "Bandit", "MedianStopping", "TruncationSelection", "Hyperband"."""

    name: str
    evaluation_interval: int = 1
    delay_evaluation: int = 0
    slack_factor: Optional[float] = None
    slack_amount: Optional[float] = None
    truncation_percentage: int = 0
    reduction_factor: int = 3
    brackets: int = 1


@dataclass(frozen=True)
class Resumed:
    """A child of an earlier sweep that is to go on: its values, and the run whose outputs it finds again."""

    run_id: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What an earlier sweep has found out: a warm start for a sampling that learns."""

    parameters: dict[str, Any]
    value: float


@dataclass(frozen=True)
class SweepSpec:
    sampling: Sampling
    primary_metric: str
    goal: str  # "maximize" or "minimize"
    max_total_runs: int
    max_concurrent_runs: int
    child: dict[str, Any]  # a RunSpec as JSON: what every child is, but for its values
    max_duration_minutes: int = 10080
    policy: Optional[Policy] = None
    resumed: tuple[Resumed, ...] = ()
    known: tuple[Known, ...] = ()
    resume_from: tuple[str, ...] = ()  # the sweeps that `known` comes from
    most_failures_in_a_row: int = 10

    @property
    def sign(self) -> float:
        """Times a value: more is better, whatever the goal."""
        return 1.0 if self.goal == MAXIMIZE else -1.0


@dataclass(frozen=True)
class Trial:
    """One child: what it was given, and how it went, as far as it is known."""

    number: int
    run_id: str
    parameters: dict[str, Any]
    state: str = "Waiting"  # of its run, once it has one
    best: Optional[float] = None  # over all that it reported
    reports: int = 0
    stopped: str = ""  # why the policy ended it
    resumes: str = ""  # the run that it goes on from
    bracket: int = 0


def called(sweep_id: str, run_id: str) -> str:
    """How people call a run where its sweep is known: a child of another one has its whole name."""
    mine = f"{sweep_id}_"
    return f"child {run_id[len(mine) :]}" if run_id.startswith(mine) else run_id
