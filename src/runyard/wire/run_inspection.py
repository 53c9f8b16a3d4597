"""Response types for the details of one run: logs, processes, phases, code and environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class LogView:
    name: str
    size: int
    rank: Optional[int]
    role: str  # "rank", "worker", "chief", "ps", "evaluator", "environment", "mpirun"
    node: Optional[str]


@dataclass(frozen=True)
class ProcessView:
    rank: int
    role: str
    node: str
    argv: list[str]
    variables: dict[str, str]  # values are masked if their name looks like that of a secret
    log: str


@dataclass(frozen=True)
class PhaseView:
    """`begin` and `end` are called `from` and `to` in JSON."""

    phase: str  # "snapshot", "environment", "data", "queue", "launch", "run", "finalize"
    begin: float
    end: Optional[float]


@dataclass(frozen=True)
class CodeFile:
    path: str
    size: int
    mode: str  # "644", "755", "link", "dir"


@dataclass(frozen=True)
class CodeChange:
    path: str
    change: str  # "added", "removed", "changed"
    diff: Optional[str]  # None: binary, or too long to compare


@dataclass(frozen=True)
class EnvironmentView:
    key: Optional[str]
    lock: str
    log: str


@dataclass(frozen=True)
class PackageChange:
    package: str
    a: Optional[str]
    b: Optional[str]
