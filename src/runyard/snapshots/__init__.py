"""The code of a run as it was at submit: frozen by content, stored once, copied out for each run.

On the people's side::

    frozen = freeze(folder, index_folder=..., pack_to=depot.incoming / name)   # reads only what changed
    if not depot.has(frozen.id):
        pack = pack_missing(frozen, depot.missing(frozen.manifest.digests), depot.incoming / other_name)
        depot.add(frozen.manifest.to_bytes(), pack)

and on the yard's: ``depot.materialize(frozen.id, folder)``. Between the two are only a list of hashes, the bytes of a
manifest and the path of a pack, so that `Depot` may live in another process. Only the standard library is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.snapshots.freeze import Frozen, freeze
from runyard.snapshots.manifest import Entry, Manifest
from runyard.snapshots.pack_upload import pack_missing, write_pack

if TYPE_CHECKING:
    from runyard.snapshots.store import Depot

__all__ = ["Depot", "Entry", "Frozen", "Manifest", "freeze", "pack_missing", "write_pack"]


def __getattr__(name: str) -> Any:
    if name == "Depot":  # the yard's side: whoever only submits does not wait for its imports
        from runyard.snapshots.store import Depot

        return Depot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
