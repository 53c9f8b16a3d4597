"""Request types of web services and images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class DeployService:
    name: str
    kind: str  # "Local", "ACI" or "AKS", the class of its configuration
    models: list[str]  # as "name", "name:3" or "name:champion"
    spec: dict[str, Any] = field(default_factory=dict)  # a VersionSpec
    configuration: dict[str, Any] = field(default_factory=dict)  # a ServiceConfiguration
    description: Optional[str] = None
    tags: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)  # primary, secondary; generated if absent
    overwrite: bool = False
    created_by: str = ""


@dataclass(frozen=True)
class ChangeService:
    """Update a service. None leaves a field unchanged.

    Models or a spec create a new version, which replaces the old one when it is ready.
    """

    models: Optional[list[str]] = None
    spec: Optional[dict[str, Any]] = None
    configuration: Optional[dict[str, Any]] = None  # only the settings to change
    description: Optional[str] = None
    tags: Optional[dict[str, Any]] = None
    properties: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class NewVersion:
    """Add a version that serves a share of the requests."""

    traffic_percentile: int
    models: Optional[list[str]] = None
    spec: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class NewKey:
    which: str  # "primary" or "secondary"
    value: Optional[str] = None


@dataclass(frozen=True)
class Invocation:
    body: str


@dataclass(frozen=True)
class CreateImage:
    name: str
    models: list[str]
    spec: dict[str, Any]  # a VersionSpec
    description: Optional[str] = None
    tags: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeImage:
    tags: Optional[dict[str, Any]] = None
    properties: Optional[dict[str, Any]] = None
