"""Request and response types of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class OfferSnapshot:
    """A manifest (base64). Clients of 0.1 also send the name of a pack in the store's `incoming` folder."""

    manifest: str
    pack: Optional[str] = None


@dataclass(frozen=True)
class SnapshotResponse:
    snapshot_id: Optional[str]  # None: content is missing
    missing: list[str] = field(default_factory=list)
