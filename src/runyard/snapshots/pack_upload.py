"""From the one who froze a folder to the depot: a pack with what the depot lacks, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Optional

from runyard.errors import SnapshotException
from runyard.snapshots.atomic import whole_file
from runyard.snapshots.freeze import Frozen
from runyard.snapshots.hashing import Unread, take_all
from runyard.snapshots.manifest import decode, encode, shown
from runyard.snapshots.pack import OpenPack, Pack, PackWriter


def pack_missing(frozen: Frozen, missing: Iterable[str], destination: Path) -> Optional[Path]:
    """The pack to hand over for those digests: the one that `freeze` wrote if it is just that, else a new one.

    Returns None when nothing is missing. The pack of `freeze` is removed when it is not the one to hand over.
    """
    wanted = frozenset(missing)
    if frozen.pack is not None and wanted == frozen.packed:
        return frozen.pack
    if wanted:
        write_pack(frozen, wanted, destination)
    if frozen.pack is not None and frozen.pack != destination:
        frozen.pack.unlink(missing_ok=True)
    return destination if wanted else None


def write_pack(frozen: Frozen, digests: Iterable[str], destination: Path) -> None:
    """Writes the contents with those digests, each once; what `freeze` packed is taken from there.

    Raises SnapshotException if a file that has to be read again is not what was frozen any more.
    """
    wanted = set(digests)
    with whole_file(destination, durable=False) as partial, PackWriter(partial) as pack:
        if frozen.pack is not None:
            source = Pack(frozen.pack)
            with source.open() as opened:
                _copy(source, opened, wanted, pack)
        _read_again(frozen, wanted - pack.digests, pack)
    lacking = wanted - pack.digests
    if lacking:
        destination.unlink()
        raise SnapshotException(
            f"{len(lacking)} of the contents asked for are not in this snapshot, {min(lacking)[:12]} among them",
            hint="submit again",
        )


def _copy(source: Pack, opened: OpenPack, wanted: set[str], pack: PackWriter) -> None:
    for digest, place in source.places.items():
        if digest.hex() in wanted:
            start = pack.position
            for chunk in opened.chunks(digest, place):
                pack.append(memoryview(chunk))
            pack.keep(digest.hex(), start)


def _read_again(frozen: Frozen, wanted: Set[str], pack: PackWriter) -> None:
    frozen_as = {encode(entry.path): entry for entry in frozen.manifest.files if entry.digest in wanted}
    files = [Unread(b"", path, entry.size) for path, entry in frozen_as.items()]
    for taken in take_all(os.fsencode(frozen.root), files, pack):
        if taken.digest != frozen_as.pop(taken.file.name).digest:
            raise _changed(taken.file.name, "its content is another one now")
    for path in frozen_as:
        raise _changed(path, "it is gone")


def _changed(path: bytes, why: str) -> SnapshotException:
    return SnapshotException(
        f"{shown(decode(path))} changed while it was being submitted: {why}", hint="submit again", path=decode(path)
    )
