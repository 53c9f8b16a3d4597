"""Creates a snapshot of a folder: every file that belongs to it, with the hash of its content."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard.clock import monotonic, now
from runyard.errors import SnapshotException
from runyard.snapshots.hashing import UnreadFile, hash_files
from runyard.snapshots.index import Tree, index_entry, index_of, is_settled
from runyard.snapshots.manifest import Manifest, file_record
from runyard.snapshots.pack import PackWriter
from runyard.snapshots.scan import Scan, megabytes, scan_folder
from runyard.snapshots.write_errors import replace_file

ProgressCallback = Callable[[str], None]  # receives one line of text

_REPORT_ABOVE_BYTES = 50_000_000
_REPORT_ABOVE_FILES = 2_000
_REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class Snapshot:
    """The content of a folder at one point in time."""

    manifest: Manifest
    root: Path
    warnings: tuple[str, ...] = ()
    pack: Optional[Path] = None  # contents that are new since the previous snapshot; None if there are none
    packed: frozenset[str] = frozenset()  # the digests in the pack
    files_hashed: int = 0  # number of files that were read; the others were recognized by their stat

    @property
    def id(self) -> str:
        return self.manifest.id


def freeze(
    directory: Path,
    *,
    index_folder: Path,
    pack_to: Optional[Path] = None,
    report: Optional[ProgressCallback] = None,
    cap_mb: int = 300,
) -> Snapshot:
    """Create a snapshot of a folder.

    Args:
        directory: The folder.
        index_folder: Where the index of previously read files is stored.
        pack_to: Write the contents that had to be read to this new file, so that they are read only once. Upload it
            with `pack_missing`, which adds other contents that the store lacks.
        report: Receives progress messages if there is much to read.
        cap_mb: Add a warning that names the largest files if the snapshot is larger.

    Raises:
        SnapshotException: The folder cannot be read, or the pack cannot be written; no file is left behind.
    """
    root = _resolve_folder(directory)
    index = index_of(root, index_folder)
    previous = index.load()
    scan = scan_folder(root, previous)
    records, packed = _hash_unread(scan, pack_to, report)
    if _is_worth_saving(scan, previous):
        index.save(scan.tree)
    return Snapshot(
        manifest=Manifest.of_records(scan.records + records),
        root=Path(os.fsdecode(root)),
        warnings=tuple(scan.warnings(cap_mb)),
        pack=pack_to if packed else None,
        packed=packed,
        files_hashed=len(records),
    )


def _resolve_folder(directory: Path) -> bytes:
    root = os.path.realpath(os.fsencode(directory))
    if not directory.is_dir():
        problem = "is not a folder" if directory.exists() else "does not exist"
        raise SnapshotException(
            f"the folder {os.fspath(directory)!r} {problem}",
            hint=f"pass the folder that contains the script; relative paths start at {Path.cwd()}",
            path=os.fspath(directory),
        )
    return root


def _hash_unread(
    scan: Scan, pack_to: Optional[Path], report: Optional[ProgressCallback]
) -> tuple[list[bytes], frozenset[str]]:
    """Read the files that the index does not know; return their records and the digests in the pack."""
    if not scan.unread:
        return [], frozenset()
    started_s = now()
    progress = _Progress(scan.unread, report)
    if pack_to is None:
        hashed, packed = hash_files(scan.root, scan.unread, None, progress.add), frozenset[str]()
    else:
        with replace_file(pack_to) as draft, PackWriter(draft) as pack:
            hashed = hash_files(scan.root, scan.unread, pack, progress.add)
        packed = pack.digests
        if not packed:
            pack_to.unlink()
    records = []
    for file, digest, size, status, is_stable in hashed:
        record = file_record(file.folder + file.name, bool(status.st_mode & 0o100), size, digest)
        records.append(record)
        if is_stable and file.add_to_index:
            entry = index_entry(status, record, read_at_s=started_s)
            scan.tree.setdefault(file.folder, {})[file.name] = entry
    return records, packed


def _is_worth_saving(scan: Scan, previous: Tree) -> bool:
    """True if the new index makes the next snapshot faster. Files edited just now will be read again anyway."""
    entries = (scan.tree.get(file.folder, {}).get(file.name) for file in scan.unread)
    if any(is_settled(entry) for entry in entries if entry):
        return True
    return sum(map(len, previous.values())) != sum(map(len, scan.tree.values()))


class _Progress:
    """Reports the progress of hashing if there is enough to read."""

    def __init__(self, unread: list[UnreadFile], report: Optional[ProgressCallback]) -> None:
        self._files, self._bytes = len(unread), sum(file.size for file in unread)
        self._files_done = self._bytes_done = 0
        is_large = self._bytes >= _REPORT_ABOVE_BYTES or self._files >= _REPORT_ABOVE_FILES
        self._report = report if is_large else None
        self._next_s = monotonic() + _REPORT_EVERY_S
        if self._report is not None:
            self._report(f"hashing {self._files:,} files, {megabytes(self._bytes)}")

    def add(self, files: int, size: int) -> None:
        self._files_done += files
        self._bytes_done += size
        if self._report is not None and monotonic() >= self._next_s:
            self._next_s = monotonic() + _REPORT_EVERY_S
            done = f"{self._files_done:,} of {self._files:,} files"
            self._report(f"hashing: {done}, {megabytes(self._bytes_done)} of {megabytes(self._bytes)}")
