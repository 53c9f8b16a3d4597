"""Request and response types of imported runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

IMPORTED_FROM = "runyard.imported_from"  # property of imported runs: their source
TENSORBOARD = "tensorboard"  # source of runs whose metrics the yard reads from the uploaded event files
EVENT_FILES_FOLDER = "logs/"  # of these runs


@dataclass(frozen=True)
class ImportRun:
    """Import a run of another tracking system. Importing the same id again updates the run."""

    run_id: str
    experiment: str  # any text; the yard converts it to a valid name
    name: str
    status: str  # Running, Completed, Failed, Canceled or NotEnded
    source: str
    created_at: float
    ended_at: Optional[float] = None
    parent_id: Optional[str] = None
    submitted_by: str = ""
    message: str = ""
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportResult:
    run_id: str
    created: bool  # the run did not exist before
    changed: bool  # the run existed and was updated
    points: dict[str, int]  # number of stored points per metric
    files: dict[str, str]  # name -> SHA-256
