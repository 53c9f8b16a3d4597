"""Datasets, and what came of what, as they cross between client and server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class OfDefinition:
    definition: dict[str, Any]  # a DatasetDefinition


@dataclass(frozen=True)
class PinDataset:
    definition: dict[str, Any]
    wait_s: float = 5.0


@dataclass(frozen=True)
class SaveDataset:
    definition: dict[str, Any]
    name: Optional[str] = None  # None: it only gets an id
    description: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    create_new_version: bool = False
    run_id: Optional[str] = None  # the run whose script says so


@dataclass(frozen=True)
class ChangeDataset:
    description: Optional[str] = None  # None: as it is
    tags: Optional[dict[str, Optional[str]]] = None


@dataclass(frozen=True)
class DatasetView:
    dataset_id: str
    name: Optional[str]
    version: Optional[int]
    kind: str  # "file", "tabular"
    definition: dict[str, Any]
    sources: list[str]  # for people: workspaceblobstore/mnist/, https://…
    digest: Optional[str]
    files: Optional[int]
    bytes: Optional[int]
    description: Optional[str]
    tags: dict[str, Optional[str]]
    run_id: Optional[str]
    created_at: float


@dataclass(frozen=True)
class DatasetPage:
    """One version, with what a page about it shows."""

    dataset: DatasetView
    versions: list[DatasetView]  # all of its name, the newest first
    runs: list[dict[str, Any]]  # that used it: run_id, name, mode, digest, same, status, experiment, created_at


@dataclass(frozen=True)
class DatasetNow:
    """What it points to at this moment."""

    digest: str
    files: int
    bytes: int
    same: Optional[bool]  # as when it was saved


@dataclass(frozen=True)
class PinState:
    done: bool
    doing: str = ""  # how far it is, in words
    digest: Optional[str] = None


@dataclass(frozen=True)
class DatasetFile:
    name: str
    size: int
    modified_at: float


@dataclass(frozen=True)
class DatasetFiles:
    files: list[DatasetFile]
    total: int
    bytes: int


@dataclass(frozen=True)
class Whereabouts:
    path: str


@dataclass(frozen=True)
class DataGiven:
    label: str  # mnist:2, or the place in a datastore
    mode: str
    dataset_id: Optional[str]
    digest: Optional[str]


@dataclass(frozen=True)
class DataDifference:
    """One input of two runs; None: that run was not given it."""

    name: str
    a: Optional[DataGiven]
    b: Optional[DataGiven]
    same: Optional[bool]  # None: not known


@dataclass(frozen=True)
class LineageView:
    start: list[str]  # ids of nodes
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    truncated: bool = False
