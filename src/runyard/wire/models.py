"""Registered models on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class TakeFile:
    """A file of a model that is about to be registered, on the yard's own machine."""

    name: str  # in the model
    source: str  # absolute


@dataclass(frozen=True)
class RegisterModel:
    """The next version of a model. Sent again with the same id, it is the same version.

    Its files are those that were sent before under ``upload_id``, or those of a run at ``run_path``.
    """

    registration_id: str
    name: str
    upload_id: Optional[str] = None
    run_id: Optional[str] = None  # where it comes from, also when its files were sent
    run_path: Optional[str] = None  # a file or a folder among the run's files
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
    """What is None or empty stays as it is. Properties are written once."""

    description: Optional[str] = None
    tags: dict[str, Optional[str]] = field(default_factory=dict)
    remove_tags: list[str] = field(default_factory=list)
    properties: dict[str, Optional[str]] = field(default_factory=dict)
    datasets: list[dict[str, Any]] = field(default_factory=list)  # in addition to those that are named already
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
class ModelDeed:
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
    data: list[dict[str, Any]]  # what the run was given
    details: dict[str, Any]
    used_by: list[str]  # services


@dataclass(frozen=True)
class ModelPage:
    """One version with everything that is known of it."""

    model: ModelView
    environment_lock: Optional[str]
    files: list[ModelFile]
    history: list[ModelDeed]


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
    history: list[ModelDeed]


@dataclass(frozen=True)
class Difference:
    """A value in one version and in the other; None: not there."""

    name: str
    left: Any
    right: Any


@dataclass(frozen=True)
class ModelComparison:
    left: str  # ids
    right: str
    same_files: bool
    about: list[Difference]  # framework, stage, run, …: those that differ
    metrics: list[Difference]  # all
    tags: list[Difference]
    properties: list[Difference]
    files: list[Difference]  # those that differ, as sizes
    packages: list[Difference]  # those that differ
    data: list[Difference]  # inputs that differ
