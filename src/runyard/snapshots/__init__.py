"""Snapshots of source folders: identified by content, stored once, copied out for each run.

The client runs::

    snapshot = freeze(folder, index_folder=..., pack_to=store.incoming / name)   # reads only changed files
    if not store.has(snapshot.id):
        pack = pack_missing(snapshot, store.missing(snapshot.manifest.digests), store.incoming / other_name)
        store.add(snapshot.manifest.to_bytes(), pack)

and the yard ``store.materialize(snapshot.id, folder)``. Client and store exchange only a list of digests, the bytes of
a manifest and the path of a pack, so `SnapshotStore` can be in another process. Standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.snapshots.freeze import Snapshot, freeze
from runyard.snapshots.manifest import Entry, Manifest
from runyard.snapshots.pack_upload import pack_missing, write_pack

if TYPE_CHECKING:
    from runyard.snapshots.store import SnapshotStore

__all__ = ["Entry", "Manifest", "Snapshot", "SnapshotStore", "freeze", "pack_missing", "write_pack"]


def __getattr__(name: str) -> Any:
    if name == "SnapshotStore":  # only the yard needs it: clients do not pay for its imports
        from runyard.snapshots.store import SnapshotStore

        return SnapshotStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
