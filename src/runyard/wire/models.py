"""Request and response types of registered models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class AddLocalFile:
    """Add a file of the yard's machine to a model that is about to be registered."""

    name: str  # path inside the model
    source: str  # absolute path


@dataclass(frozen=True)
class RegisterModel:
    """Register the next version of a model. Idempotent: the same registration id yields the same version.

    The files are those uploaded before under ``upload_id``, or those of a run at ``run_path``.
    """

    registration_id: str
    name: str
    upload_id: Optional[str] = None
    run_id: Optional[str] = None  # the run that produced it, also if its files were uploaded
    run_path: Optional[str] = None  # a file or folder among the run's files
    description: Optional[str] = None
    framework: Optional[str] = None
    framework_version: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    properties: dict[str, Optional[str]] = field(default_factory=dict)
    datasets: list[dict[str, Any]] = field(default_factory=list)  # scenario, id, name, version
    details: dict[str, Any] = field(default_factory=dict)  # samples, resources
    made_of: Optional[str] = None  # the model that it was exported from, such as digits:3
    registered_by: Optional[str] = None


@dataclass(frozen=True)
class ChangeModel:
    """Update a version. Fields that are None or empty stay unchanged; properties cannot be overwritten."""

    description: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    remove_tags: list[str] = field(default_factory=list)
    properties: dict[str, Optional[str]] = field(default_factory=dict)
    datasets: list[dict[str, Any]] = field(default_factory=list)  # added to the existing ones
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SetStage:
    stage: str
    note: Optional[str] = None
    by: Optional[str] = None


@dataclass(frozen=True)
class SetAlias:
    version: int
    by: Optional[str] = None


@dataclass(frozen=True)
class ModelFile:
    path: str  # below the version's folder
    size: int
    digest: str


@dataclass(frozen=True)
class ModelEvent:
    version: int
    what: str  # "registered", "stage", "alias", "alias removed", "deleted"
    before: Optional[str]
    after: Optional[str]
    note: Optional[str]
    by: Optional[str]
    at: float


@dataclass(frozen=True)
class ModelView:
    id: str
    name: str
    version: int
    description: Optional[str]
    framework: Optional[str]
    framework_version: Optional[str]
    tags: dict[str, Optional[str]]
    properties: dict[str, Optional[str]]
    stage: str
    aliases: list[str]
    digest: str
    size: int
    created_by: Optional[str]
    created_at: float
    changed_at: float
    experiment: Optional[str]
    run_id: Optional[str]
    snapshot_id: Optional[str]
    environment_key: Optional[str]
    metrics: dict[str, Any]
    data: list[dict[str, Any]]  # inputs of the run
    details: dict[str, Any]
    used_by: list[str]  # services


@dataclass(frozen=True)
class ModelPage:
    """One version with its files, environment and history."""

    model: ModelView
    environment_lock: Optional[str]
    files: list[ModelFile]
    history: list[ModelEvent]
    title: str  # the model's name in MLflow


@dataclass(frozen=True)
class AliasView:
    alias: str
    version: int
    set_by: Optional[str]
    set_at: float


@dataclass(frozen=True)
class NamedModel:
    """All versions of one name, newest first."""

    name: str
    versions: list[ModelView]
    aliases: list[AliasView]
    history: list[ModelEvent]
    title: str  # its name in MLflow
    description: Optional[str]  # of all versions
    tags: dict[str, str]  # of all versions


@dataclass(frozen=True)
class Difference:
    """A value in the two versions; None if it is absent."""

    name: str
    left: Any
    right: Any


@dataclass(frozen=True)
class ModelComparison:
    left: str  # ids
    right: str
    same_files: bool
    about: list[Difference]  # framework, stage, run, …: only those that differ
    metrics: list[Difference]  # all
    tags: list[Difference]
    properties: list[Difference]
    files: list[Difference]  # sizes of those that differ
    packages: list[Difference]  # only those that differ
    data: list[Difference]  # only inputs that differ
