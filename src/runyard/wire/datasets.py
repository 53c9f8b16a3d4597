"""Request and response types of datasets and lineage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class DatasetQuery:
    definition: dict[str, Any]  # a DatasetDefinition


@dataclass(frozen=True)
class PinDataset:
    definition: dict[str, Any]
    wait_s: float = 5.0


@dataclass(frozen=True)
class SaveDataset:
    definition: dict[str, Any]
    name: Optional[str] = None  # None: saved by id only
    description: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    create_new_version: bool = False
    run_id: Optional[str] = None  # the run whose script registers it


@dataclass(frozen=True)
class ChangeDataset:
    description: Optional[str] = None  # None: unchanged
    tags: Optional[dict[str, Optional[str]]] = None


@dataclass(frozen=True)
class DatasetView:
    dataset_id: str
    name: Optional[str]
    version: Optional[int]
    kind: str  # "file", "tabular"
    definition: dict[str, Any]
    sources: list[str]  # for display: workspaceblobstore/mnist/, https://…
    digest: Optional[str]
    files: Optional[int]
    bytes: Optional[int]
    description: Optional[str]
    tags: dict[str, Optional[str]]
    run_id: Optional[str]
    created_at: float


@dataclass(frozen=True)
class DatasetPage:
    """One version, with all versions of its name and the runs that used it."""

    dataset: DatasetView
    versions: list[DatasetView]  # all of its name, the newest first
    runs: list[dict[str, Any]]  # run_id, name, mode, digest, same, status, experiment, created_at


@dataclass(frozen=True)
class DatasetContent:
    """The content that a dataset currently resolves to."""

    digest: str
    files: int
    bytes: int
    same: Optional[bool]  # equal to the content when it was saved; None: not recorded then


@dataclass(frozen=True)
class PinState:
    done: bool
    doing: str = ""  # progress, for display
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
class LocalPath:
    path: str


@dataclass(frozen=True)
class RunInput:
    label: str  # mnist:2, or DATASTORE/PATH
    mode: str
    dataset_id: Optional[str]
    digest: Optional[str]


@dataclass(frozen=True)
class DataDifference:
    """One input of two runs; None if a run does not have it."""

    name: str
    a: Optional[RunInput]
    b: Optional[RunInput]
    same: Optional[bool]  # None: unknown


@dataclass(frozen=True)
class LineageView:
    start: list[str]  # ids of the nodes that were queried
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    truncated: bool = False
