"""The code of a run as it is now: every file of a folder that belongs to it, by the hash of its content."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard.clock import monotonic, now
from runyard.errors import SnapshotException
from runyard.snapshots.atomic import whole_file
from runyard.snapshots.hashing import Unread, take_all
from runyard.snapshots.index import Tree, index_of, is_settled, seen
from runyard.snapshots.manifest import Manifest, file_record
from runyard.snapshots.pack import PackWriter
from runyard.snapshots.scan import Survey, megabytes, survey

Say = Callable[[str], None]

_WORTH_SAYING_BYTES = 50_000_000
_WORTH_SAYING_FILES = 2_000
_SAY_EVERY_S = 1.0


@dataclass(frozen=True)
class Frozen:
    """A folder at one moment. The contents that are new since the last freeze are in ``pack``, if one was asked for."""

    manifest: Manifest
    root: Path
    warnings: tuple[str, ...] = ()
    pack: Optional[Path] = None  # None when nothing is new
    packed: frozenset[str] = frozenset()  # the digests in it
    files_hashed: int = 0  # how many were read; the others were recognised by their stat

    @property
    def id(self) -> str:
        return self.manifest.id


def freeze(
    directory: Path,
    *,
    index_folder: Path,
    pack_to: Optional[Path] = None,
    say: Optional[Say] = None,
    cap_mb: int = 300,
) -> Frozen:
    """Freezes the folder; blocks while files are read.

    With ``pack_to``, what had to be read is written to that new file in the same pass, so that it is read only once.
    Hand it over with `pack_missing`, which adds what the other side lacks beyond it. Above ``cap_mb`` the snapshot is
    made all the same, with a warning that names the biggest files. An error leaves no file behind.
    """
    root = _real_folder(directory)
    index = index_of(root, index_folder)
    known = index.load()
    found = survey(root, known)
    fresh = found.tree
    records, packed = _read_unread(found, fresh, pack_to, say)
    if _learned(found, known, fresh):
        index.save(fresh)
    manifest = Manifest.of_records(found.records + records)
    return Frozen(
        manifest=manifest,
        root=Path(os.fsdecode(root)),
        warnings=tuple(found.warnings(cap_mb)),
        pack=pack_to if packed else None,
        packed=packed,
        files_hashed=len(records),
    )


def _real_folder(directory: Path) -> bytes:
    root = os.path.realpath(os.fsencode(directory))
    if not directory.is_dir():
        what = "is not a folder" if directory.exists() else "does not exist"
        raise SnapshotException(
            f"the folder {os.fspath(directory)!r} {what}",
            hint=f"give the folder that holds the script; relative paths start at {Path.cwd()}",
            path=os.fspath(directory),
        )
    return root


def _read_unread(
    found: Survey, fresh: Tree, pack_to: Optional[Path], say: Optional[Say]
) -> tuple[list[bytes], frozenset[str]]:
    if not found.unread:
        return [], frozenset()
    started_s = now()
    progress = _Progress(found.unread, say)
    if pack_to is None:
        taken, packed = take_all(found.root, found.unread, None, progress.read), frozenset[str]()
    else:
        with whole_file(pack_to, durable=False) as partial, PackWriter(partial) as pack:
            taken = take_all(found.root, found.unread, pack, progress.read)
        packed = pack.digests
        if not packed:
            pack_to.unlink()
    records = []
    for file, digest, size, about, stable in taken:
        record = file_record(file.folder + file.name, bool(about.st_mode & 0o100), size, digest)
        records.append(record)
        if stable and file.remember:
            fresh.setdefault(file.folder, {})[file.name] = seen(about, record, read_at_s=started_s)
    return records, packed


def _learned(found: Survey, known: Tree, fresh: Tree) -> bool:
    """Whether the next freeze could be quicker for it. Files that were edited just now are read again in any case."""
    if any(is_settled(one) for one in (fresh.get(file.folder, {}).get(file.name) for file in found.unread) if one):
        return True
    return sum(map(len, known.values())) != sum(map(len, fresh.values()))


class _Progress:
    """Says what is being read when it takes long enough to wonder."""

    def __init__(self, unread: list[Unread], say: Optional[Say]) -> None:
        self._files, self._bytes = len(unread), sum(file.size for file in unread)
        self._files_done = self._bytes_done = 0
        worth_it = self._bytes >= _WORTH_SAYING_BYTES or self._files >= _WORTH_SAYING_FILES
        self._say = say if worth_it else None
        self._next_s = monotonic() + _SAY_EVERY_S
        if self._say is not None:
            self._say(f"hashing {self._files:,} files, {megabytes(self._bytes)}")

    def read(self, files: int, size: int) -> None:
        self._files_done += files
        self._bytes_done += size
        if self._say is not None and monotonic() >= self._next_s:
            self._next_s = monotonic() + _SAY_EVERY_S
            done = f"{self._files_done:,} of {self._files:,} files"
            self._say(f"hashing: {done}, {megabytes(self._bytes_done)} of {megabytes(self._bytes)}")
