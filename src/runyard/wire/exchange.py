"""Request and response types of imported runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

IMPORTED_FROM = "runyard.imported_from"  # property of imported runs: their source
TENSORBOARD = "tensorboard"  # source of runs whose metrics the yard reads from the uploaded event files
EVENT_FILES_FOLDER = "logs/"  # of these runs


@dataclass(frozen=True)
class ImportedDataset:
    name: str
    digest: str
    source_type: str = ""
    source: str = ""
    schema: str = ""
    profile: str = ""
    tags: dict[str, str] = field(default_factory=dict)


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
    datasets: list[ImportedDataset] = field(default_factory=list)
    model_outputs: dict[str, int] = field(default_factory=dict)  # steps by id of the logged model
    model_inputs: list[str] = field(default_factory=list)
    # Points and files are sent next: a new run is running, and the state of an existing one is not changed, until the
    # same request arrives without this.
    data_follows: bool = False


@dataclass(frozen=True)
class ImportedMetric:
    name: str
    step: int
    time: float
    value: float
    run_id: str = ""
    dataset_name: str = ""
    dataset_digest: str = ""


@dataclass(frozen=True)
class ImportModel:
    """Import a logged model of MLflow. Importing the same id again adds what is new."""

    model_id: str
    experiment: str  # any text
    name: str
    status: int  # as MLflow numbers it
    source: str
    created_at: float
    changed_at: float
    model_type: str = ""
    run_id: Optional[str] = None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: list[ImportedMetric] = field(default_factory=list)


@dataclass(frozen=True)
class ImportModelResult:
    model_id: str
    created: bool  # the model did not exist before
    changed: bool  # the model existed and was updated
    files: dict[str, str]  # of a model without a run: name -> SHA-256


@dataclass(frozen=True)
class ImportResult:
    run_id: str
    created: bool  # the run did not exist before
    changed: bool  # the run existed and was updated
    is_pending: bool  # data follows, after which the run gets another state
    points: dict[str, int]  # number of stored points per metric
    files: dict[str, str]  # name -> SHA-256
