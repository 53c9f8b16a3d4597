"""Builds the pack that a client uploads: exactly the contents that the store lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Optional

from runyard.errors import SnapshotException
from runyard.snapshots.freeze import Snapshot
from runyard.snapshots.hashing import UnreadFile, hash_files
from runyard.snapshots.manifest import decode, encode, printable
from runyard.snapshots.pack import OpenPack, Pack, PackWriter
from runyard.snapshots.write_errors import replace_file


def pack_missing(snapshot: Snapshot, missing: Iterable[str], destination: Path) -> Optional[Path]:
    """A pack with the missing digests: the one that `freeze` wrote if it matches, else a new one.

    Returns None if nothing is missing. The pack of `freeze` is deleted if it is not the returned one.
    """
    digests = frozenset(missing)
    if snapshot.pack is not None and digests == snapshot.packed:
        return snapshot.pack
    if digests:
        write_pack(snapshot, digests, destination)
    if snapshot.pack is not None and snapshot.pack != destination:
        snapshot.pack.unlink(missing_ok=True)
    return destination if digests else None


def write_pack(snapshot: Snapshot, digests: Iterable[str], destination: Path) -> None:
    """Write a pack with these contents, copied from the pack of `freeze` where possible.

    Raises:
        SnapshotException: A file that must be read again has changed since the snapshot.
    """
    requested = set(digests)
    with replace_file(destination) as draft, PackWriter(draft) as pack:
        if snapshot.pack is not None:
            source = Pack(snapshot.pack)
            with source.open() as source_file:
                _copy(source, source_file, requested, pack)
        _read_again(snapshot, requested - pack.digests, pack)
    missing = requested - pack.digests
    if missing:
        destination.unlink()
        raise SnapshotException(
            f"{len(missing)} of the requested contents are not in this snapshot, for example {min(missing)[:12]}",
            hint="submit again",
        )


def _copy(source: Pack, source_file: OpenPack, requested: set[str], pack: PackWriter) -> None:
    for digest, location in source.locations.items():
        if digest.hex() in requested:
            start = pack.position
            for chunk in source_file.chunks(digest, location):
                pack.append(memoryview(chunk))
            pack.finish_blob(digest.hex(), start)


def _read_again(snapshot: Snapshot, digests: Set[str], pack: PackWriter) -> None:
    entries = {encode(entry.path): entry for entry in snapshot.manifest.files if entry.digest in digests}
    files = [UnreadFile(b"", path, entry.size) for path, entry in entries.items()]
    for result in hash_files(os.fsencode(snapshot.root), files, pack):
        if result.digest != entries.pop(result.file.name).digest:
            raise _changed_error(result.file.name, "its content is different")
    for path in entries:
        raise _changed_error(path, "it was deleted")


def _changed_error(path: bytes, reason: str) -> SnapshotException:
    return SnapshotException(
        f"{printable(decode(path))} changed during the submission: {reason}", hint="submit again", path=decode(path)
    )
