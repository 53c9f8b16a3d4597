"""Request and response types of the chart endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class SeriesName:
    run_id: str
    name: str


@dataclass(frozen=True)
class SeriesView:
    name: str
    kind: str
    count: int
    last: Any
    min: Optional[float]
    max: Optional[float]
