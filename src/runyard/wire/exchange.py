"""Imported runs on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class ImportRun:
    """A run that took place elsewhere. Sent again it is the same run, with what has come since."""

    run_id: str
    experiment: str  # any text; the yard makes a name of it
    name: str
    status: str  # Completed, Failed, Canceled or NotEnded
    source: str
    created_at: float
    ended_at: Optional[float] = None
    parent_id: Optional[str] = None
    submitted_by: str = ""
    message: str = ""
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Imported:
    run_id: str
    created: bool  # it was not here before
    changed: bool  # it was, and has something new now
    points: dict[str, int]  # how many of each metric are here
    files: dict[str, str]  # name -> SHA-256
