"""The table of runs on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class TableRow:
    """One run in the table. Numbers that JSON does not know are the texts NaN, Infinity and -Infinity."""

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
    reason: str  # why it ended, or what it does or waits for; empty when all went well
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
class Option:
    text: str
    detail: str = ""
