"""The yard itself on the wire, and the errors that it answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Health:
    version: str
    pid: int
    home: str
    live_runs: int
    kit: str = ""


@dataclass(frozen=True)
class Problem:
    """An error of runyard.errors: `code` is its class name there."""

    code: str
    message: str
    hint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
