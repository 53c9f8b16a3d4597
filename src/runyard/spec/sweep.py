"""The specification of a sweep: search space, sampling, early termination policy and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

RANDOM, GRID, BAYESIAN, SOBOL, POPULATION = "Random", "Grid", "BayesianOptimization", "Sobol", "Population"
OPTUNA = "Optuna"  # an Optuna study inside a run: the yard records its trials and does not sample
STUDY_PROPERTY = "runyard.study"  # of a run whose script runs an Optuna study: the study's name
MAXIMIZE, MINIMIZE = "maximize", "minimize"


@dataclass(frozen=True)
class Population:
    """Settings of population-based sampling."""

    size: int
    replaced: float = 0.25  # share of a generation, the weakest, that continues from better ones
    resampled: float = 0.25  # probability that a value is drawn again instead of perturbed


@dataclass(frozen=True)
class Sampling:
    name: str  # one of the constants above
    space: dict[str, Any]  # name -> expression; see spec/space.py
    seed: int = 0
    population: Optional[Population] = None


@dataclass(frozen=True)
class Policy:
    """An early termination policy: "Bandit", "MedianStopping", "TruncationSelection" or "Hyperband"."""

    name: str
    evaluation_interval: int = 1
    delay_evaluation: int = 0
    slack_factor: Optional[float] = None
    slack_amount: Optional[float] = None
    truncation_percentage: int = 0
    reduction_factor: int = 3
    brackets: int = 1


@dataclass(frozen=True)
class ResumedChild:
    """A child of an earlier sweep to resume: its values, and the run whose outputs it continues from."""

    run_id: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Observation:
    """A result of an earlier sweep, as a warm start for Bayesian sampling."""

    parameters: dict[str, Any]
    value: float


@dataclass(frozen=True)
class Study:
    """The Optuna study whose trials are the children of a sweep."""

    key: str  # the same for all runs that continue the study
    name: str
    host: str  # the run whose processes run the trials
    objectives: dict[str, str]  # metric -> goal; children are ranked by the first one


@dataclass(frozen=True)
class SweepSpec:
    sampling: Sampling
    primary_metric: str
    goal: str  # "maximize" or "minimize"
    max_total_runs: int
    max_concurrent_runs: int
    child: dict[str, Any]  # a RunSpec as JSON, without the parameter values
    max_duration_minutes: int = 10080
    policy: Optional[Policy] = None
    resumed: tuple[ResumedChild, ...] = ()
    known: tuple[Observation, ...] = ()
    resume_from: tuple[str, ...] = ()  # ids of the sweeps that `known` was taken from
    most_failures_in_a_row: int = 10
    study: Optional[Study] = None

    @property
    def sign(self) -> float:
        """Factor that turns the goal into maximization."""
        return 1.0 if self.goal == MAXIMIZE else -1.0


@dataclass(frozen=True)
class Trial:
    """One child run: its parameters and its result so far."""

    number: int
    run_id: str
    parameters: dict[str, Any]
    state: str = "Waiting"  # state of its run, once submitted
    best: Optional[float] = None  # best reported value of the primary metric
    reports: int = 0
    stopped: str = ""  # reason why the policy stopped it
    resumes: str = ""  # run that it continues from
    bracket: int = 0


def child_label(sweep_id: str, run_id: str) -> str:
    """Short name of a run in messages about a sweep; a child of another sweep keeps its full id."""
    prefix = f"{sweep_id}_"
    return f"child {run_id[len(prefix) :]}" if run_id.startswith(prefix) else run_id
