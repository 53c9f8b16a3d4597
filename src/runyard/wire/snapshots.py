"""Snapshots on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class OfferSnapshot:
    """A manifest (base64), and the name of the pack with its new content in the depot's `incoming` folder."""

    manifest: str
    pack: Optional[str] = None


@dataclass(frozen=True)
class SnapshotAnswer:
    snapshot_id: Optional[str]  # None: content is missing
    missing: list[str] = field(default_factory=list)
