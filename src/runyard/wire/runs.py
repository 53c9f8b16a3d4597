"""Runs on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class SubmitRun:
    """A run to be started by the yard. Sent again with the same id, it is the same run."""

    run_id: str
    experiment: str
    spec: dict[str, Any]  # a RunSpec
    snapshot_id: str
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    submitted_by: str = ""
    parent_id: Optional[str] = None
    frozen_from: Optional[float] = None  # when the freezing of its code began, by the client's clock


@dataclass(frozen=True)
class SubmitFolder:
    """A run of the code in a folder that the yard can read itself. Sent again with the same id, it is the same run."""

    run_id: str
    experiment: str
    spec: dict[str, Any]  # of a RunSpec, what is not its default
    source_directory: str  # absolute
    submitted_by: str = ""


@dataclass(frozen=True)
class BeginRun:
    """A run whose process is the caller's own: interactive, or a child."""

    run_id: str
    experiment: str
    parent_id: Optional[str] = None
    name: Optional[str] = None
    snapshot_id: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    submitted_by: str = ""
    hold: bool = True  # True: the caller locks the run's folder, and the run ends when the caller goes away


@dataclass(frozen=True)
class EndView:
    reason: str
    message: str = ""
    exit_code: Optional[int] = None
    signal: Optional[str] = None
    rank: Optional[int] = None
    node: Optional[str] = None
    traceback: str = ""
    last_lines: str = ""
    processes_left: Optional[int] = None


@dataclass(frozen=True)
class AttemptView:
    """One that is over, and was followed by another."""

    number: int
    reason: str
    message: str
    node: Optional[str]
    ended_at: Optional[float]


@dataclass(frozen=True)
class RunView:
    run_id: str
    number: int
    experiment: str
    status: str
    type: Optional[str]
    name: Optional[str]
    parent_id: Optional[str]
    root_id: str
    target: Optional[str]
    snapshot_id: Optional[str]
    environment_key: Optional[str]
    submitted_by: Optional[str]
    created_at: float
    started_at: Optional[float]
    ended_at: Optional[float]
    end: Optional[EndView]
    timeline: dict[str, float]  # state -> when it was first entered; and "Snapshot", "Data"
    activity: str  # what is being done or waited for right now
    activity_since: Optional[float]
    warnings: list[str]
    tags: dict[str, Optional[str]]
    properties: dict[str, Optional[str]]
    spec: Optional[dict[str, Any]]
    folder: str
    version: int
    attempt: int = 1  # which one is under way, or was the last
    attempts: list[AttemptView] = field(default_factory=list)  # those before it


@dataclass(frozen=True)
class RunPage:
    runs: list[RunView]
    next: Optional[int]  # the cursor of the following page; None: that was the last


@dataclass(frozen=True)
class FailRun:
    message: str = ""
    code: str = ""


@dataclass(frozen=True)
class TakenSnapshot:
    snapshot_id: str


@dataclass(frozen=True)
class RenameRun:
    name: str


@dataclass(frozen=True)
class Labels:
    """Tags or properties to set; tags also to remove."""

    set: dict[str, Optional[str]] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FileView:
    name: str
    size: int


@dataclass(frozen=True)
class RunSummary:
    """What a run has brought: the last value of each metric, and its files."""

    metrics: dict[str, Any]
    files: list[FileView]


@dataclass(frozen=True)
class MetricsQuery:
    run_ids: list[str]
    name: Optional[str] = None
    recursive: bool = False
