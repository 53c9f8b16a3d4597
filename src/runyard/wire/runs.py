"""Request and response types of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class SubmitRun:
    """Submit a run. Idempotent: the same id yields the same run."""

    run_id: str
    experiment: str
    spec: dict[str, Any]  # a RunSpec; missing fields have their defaults
    snapshot_id: str = ""  # an uploaded snapshot; empty if the yard takes one of source_directory
    source_directory: Optional[str] = None  # absolute; a folder that the yard can read
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    submitted_by: str = ""
    parent_id: Optional[str] = None
    frozen_from: Optional[float] = None  # start of the snapshot, by the client's clock


@dataclass(frozen=True)
class BeginRun:
    """Start a run in the caller's own process: interactive, or a child."""

    run_id: str
    experiment: str
    parent_id: Optional[str] = None
    name: Optional[str] = None
    snapshot_id: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    submitted_by: str = ""
    hold: bool = True  # True: the caller locks the run's folder, and the run ends when the caller exits


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
    """An earlier attempt, which was followed by another one."""

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
    timeline: dict[str, float]  # state -> time it was first entered; and "Snapshot", "Data"
    activity: str  # the current step, or the reason for waiting
    activity_since: Optional[float]
    warnings: list[str]
    tags: dict[str, Optional[str]]
    properties: dict[str, Optional[str]]
    spec: Optional[dict[str, Any]]
    folder: str  # read-only for clients, except the journals and the lock of the client (docs/decisions/0001)
    version: int
    attempt: int = 1  # the current or last one
    attempts: list[AttemptView] = field(default_factory=list)  # the earlier ones


@dataclass(frozen=True)
class RunPage:
    runs: list[RunView]
    next: Optional[int]  # the cursor of the following page; None on the last page


@dataclass(frozen=True)
class FailRun:
    message: str = ""
    code: str = ""


@dataclass(frozen=True)
class SetSnapshot:
    snapshot_id: str


@dataclass(frozen=True)
class RenameRun:
    name: str


@dataclass(frozen=True)
class Labels:
    """Tags or properties to set; only tags can be removed."""

    set: dict[str, Optional[str]] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Params:
    """Parameters of a run, by name."""

    params: dict[str, str]


@dataclass(frozen=True)
class FileView:
    name: str
    size: int


@dataclass(frozen=True)
class RunSummary:
    """The results of a run: the last value of each metric, and its files."""

    metrics: dict[str, Any]
    files: list[FileView]


@dataclass(frozen=True)
class MetricsQuery:
    run_ids: list[str]
    name: Optional[str] = None
    recursive: bool = False
