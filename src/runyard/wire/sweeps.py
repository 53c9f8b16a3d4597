"""Request and response types of sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class SubmitSweep:
    """Submit a sweep. Idempotent: the same id yields the same sweep."""

    run_id: str
    experiment: str
    spec: dict[str, Any]  # a SweepSpec
    snapshot_id: str
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    submitted_by: str = ""


@dataclass(frozen=True)
class RerunChildren:
    """Submit a new sweep with the id ``run_id`` that repeats these children of another sweep."""

    run_id: str
    run_ids: list[str]


@dataclass(frozen=True)
class StudyTrial:
    """The current state of one trial of an Optuna study."""

    number: int
    state: str  # "running", "complete", "pruned" or "failed"
    parameters: dict[str, Any] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)  # of a complete trial: one per objective
    steps: list[int] = field(default_factory=list)  # of the intermediate values
    intermediate: list[float] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    message: str = ""  # the reason of a failure
    started_at: Optional[float] = None
    ended_at: Optional[float] = None


@dataclass(frozen=True)
class StudyReport:
    """Record trials of an Optuna study as children of a run. Idempotent: equal reports are recorded once."""

    key: str  # identifies the study in all runs that continue it
    name: str
    metrics: list[str]  # the names of the objectives
    directions: list[str]  # "maximize" or "minimize", one per objective
    trials: list[StudyTrial]


@dataclass(frozen=True)
class StudyRecorded:
    sweep_id: str  # the run that has the trials: the run itself, or its child for a further study


@dataclass(frozen=True)
class TrialView:
    number: int
    run_id: str
    parameters: dict[str, Any]
    status: str
    best: Optional[float]
    reports: int
    stopped: str  # the reason for stopping it early
    resumes: str  # the run whose checkpoint it continues from
    error: str = ""  # the reason for its failure
    began_at: Optional[float] = None  # time of its start; of its submission until it has started


@dataclass(frozen=True)
class SweepView:
    sweep_id: str
    status: str
    doing: str
    primary_metric: str
    goal: str
    sampling: dict[str, Any]
    policy: Optional[dict[str, Any]]
    max_total_runs: int
    max_concurrent_runs: int
    max_duration_minutes: int
    best: Optional[int]  # the number of the best child so far
    children: list[TrialView]
    resume_from: list[str]
    target: Optional[str]
    study: str = ""  # the name of the Optuna study whose trials are the children


@dataclass(frozen=True)
class Importance:
    """The share of the metric's variance that each parameter explains; the shares add up to 1.

    ``why_not`` has the reason if the shares cannot be computed.
    """

    parameters: dict[str, float]
    why_not: str = ""
