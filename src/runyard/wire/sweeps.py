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


@dataclass(frozen=True)
class Importance:
    """The share of the metric's variance that each parameter explains; the shares add up to 1.

    ``why_not`` has the reason if the shares cannot be computed.
    """

    parameters: dict[str, float]
    why_not: str = ""
