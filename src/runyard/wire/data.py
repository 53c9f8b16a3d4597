"""Datastores and transfers, as they cross between client and server. A credential goes one way only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class RegisterDatastore:
    name: str
    kind: str
    configuration: dict[str, Any]  # with its credentials: they are taken out before anything is kept
    overwrite: bool = False
    skip_validation: bool = False


@dataclass(frozen=True)
class DatastoreView:
    name: str
    kind: str
    configuration: dict[str, Any]
    is_default: bool
    credentials: str  # "kept", "environment", "none": where they come from, and nothing more
    created_at: float


@dataclass(frozen=True)
class StoredView:
    path: str
    size: int
    modified_at: float
    is_folder: bool = False


@dataclass(frozen=True)
class ListingView:
    datastore: str
    path: str
    entries: list[StoredView]
    files: int
    bytes: int
    truncated: bool = False


@dataclass(frozen=True)
class TransferRequest:
    kind: str  # "upload", "download"
    datastore: str
    local: str  # a folder on the yard's machine, from the root
    path: str = ""  # below the datastore's root
    files: Optional[list[str]] = None  # of an upload: these alone, below `local`
    overwrite: bool = False


@dataclass(frozen=True)
class TransferView:
    transfer_id: str
    kind: str
    datastore: str
    path: str
    local: str
    state: str  # "running", "done", "failed", "canceled"
    created_at: float
    files: int = 0
    files_done: int = 0
    files_skipped: int = 0
    bytes: int = 0
    bytes_done: int = 0
    doing: str = ""  # "" while bytes move; else what it waits for
    seconds: float = 0.0
    error: Optional[dict[str, str]] = None  # code, message, hint
    warnings: list[str] = field(default_factory=list)
