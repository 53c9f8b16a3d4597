"""Response types of the run table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class TableRow:
    """One run in the table. Numbers that JSON lacks are the strings NaN, Infinity and -Infinity."""

    run_id: str
    number: int
    experiment: str
    name: Optional[str]
    display_name: str
    status: str
    target: Optional[str]
    type: Optional[str]
    parent_id: Optional[str]
    submitted_by: Optional[str]
    created_at: float
    started_at: Optional[float]
    ended_at: Optional[float]
    duration_s: Optional[float]
    nodes: int
    ranks: int
    reason: str  # the reason for its end, or its current activity; empty if it succeeded
    tags: dict[str, Optional[str]]
    params: dict[str, Any]
    metrics: dict[str, Any]  # the last value of each


@dataclass(frozen=True)
class TablePage:
    total: int
    rows: list[TableRow]
    version: int


@dataclass(frozen=True)
class FieldView:
    name: str
    kind: str  # "text", "number", "time", "duration"
    runs: int


@dataclass(frozen=True)
class FieldList:
    fields: list[FieldView]


@dataclass(frozen=True)
class CompletionOption:
    text: str
    detail: str = ""
