"""Sweeps on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class SubmitSweep:
    """A sweep to be started. Sent again with the same id, it is the same sweep."""

    run_id: str
    experiment: str
    spec: dict[str, Any]  # a SweepSpec
    snapshot_id: str
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    submitted_by: str = ""


@dataclass(frozen=True)
class RerunChildren:
    """A new sweep, called ``run_id``, of exactly these children of another."""

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
    stopped: str  # why it was ended early
    resumes: str  # the run that it goes on from
    error: str = ""  # why it failed
    began_at: Optional[float] = None  # when it started; until then, when it was submitted


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
    """How much of the metric's spread each parameter explains; together 1. Empty, with why, when it cannot be said."""

    parameters: dict[str, float]
    why_not: str = ""
