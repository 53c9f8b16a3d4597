"""Request and response types of datastores and transfers. Credentials occur in requests only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class RegisterDatastore:
    name: str
    kind: str
    configuration: dict[str, Any]  # including credentials, which are removed before it is stored
    overwrite: bool = False
    skip_validation: bool = False


@dataclass(frozen=True)
class DatastoreView:
    name: str
    kind: str
    configuration: dict[str, Any]
    is_default: bool
    credentials: str  # their origin, never their value: "kept" (in the home folder), "environment", "none"
    created_at: float


@dataclass(frozen=True)
class StoredEntry:
    path: str
    size: int
    modified_at: float
    is_folder: bool = False


@dataclass(frozen=True)
class ListingView:
    datastore: str
    path: str
    entries: list[StoredEntry]
    files: int
    bytes: int
    truncated: bool = False


@dataclass(frozen=True)
class TransferRequest:
    kind: str  # "upload", "download"
    datastore: str
    local: str  # absolute path of a folder on the yard's machine
    path: str = ""  # below the datastore's root
    files: Optional[list[str]] = None  # uploads only: restrict to these paths below `local`
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
    doing: str = ""  # empty while bytes are transferred, else the reason for waiting
    seconds: float = 0.0
    error: Optional[dict[str, str]] = None  # code, message, hint
    warnings: list[str] = field(default_factory=list)
