"""The yard's snapshot store: a folder in which each content is stored once.

    <root>/incoming/                 packs that clients are uploading
    <root>/packs/<name>.pack         contents; immutable. <name>.bad lists the damaged ones
    <root>/manifests/<snapshot id>   the entries of each snapshot

A manifest is written after all its contents are stored, so every visible snapshot is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Optional

from runyard.clock import now
from runyard.errors import SnapshotException
from runyard.posix.atomic_write import flush_to_disk
from runyard.snapshots.manifest import Entry, Manifest, encode
from runyard.snapshots.pack import CHUNK_BYTES, BlobLocation, OpenPack, Pack
from runyard.snapshots.write_errors import replace_file, write_error

_ABANDONED_AFTER_S = 24 * 3600.0
_FLUSH_NOW_BYTES = 16 << 20
_CACHED_MANIFESTS = 16


class SnapshotStore:
    """Thread-safe. All state is on disk: a new instance on the same folder is equivalent."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._packs = root / "packs"
        self._manifests = root / "manifests"
        self._lock = threading.RLock()
        self._blobs: dict[bytes, Pack] = {}
        self._loaded: set[str] = set()  # names of packs
        self._packs_changed_ns = -1
        self._cached: dict[str, Manifest] = {}  # validated manifests, in order of last use

    @property
    def incoming(self) -> Path:
        """The folder where clients write packs for `add`: on the same disk, so that adding one is a rename."""
        folder = self._root / "incoming"
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def has(self, snapshot_id: str) -> bool:
        """True if the snapshot is stored with all its contents."""
        with contextlib.suppress(SnapshotException):
            return not self.missing(self.manifest(snapshot_id).digests)
        return False

    def missing(self, digests: Iterable[str]) -> list[str]:
        """The digests that are not stored, without duplicates."""
        with self._lock:
            missing = [digest for digest in dict.fromkeys(digests) if bytes.fromhex(digest) not in self._blobs]
            if not missing or not self._load_new_packs():
                return missing
            return [digest for digest in missing if bytes.fromhex(digest) not in self._blobs]

    def add(self, manifest_bytes: bytes, pack_path: Optional[Path] = None) -> str:
        """Store a snapshot and return its id. The pack is moved. Idempotent and thread-safe.

        Raises:
            SnapshotException: The manifest or the pack is damaged, or a content is missing.
        """
        manifest = Manifest.from_bytes(manifest_bytes)
        pack = None if pack_path is None else self._add_pack(pack_path)
        missing = self.missing(manifest.digests)
        if missing:
            raise SnapshotException(
                f"{len(missing)} contents of snapshot {manifest.id[:12]} were not uploaded, "
                f"for example {missing[0][:12]}",
                hint="submit the folder again",
                missing=missing,
            )
        path = self._manifests / manifest.id
        if _read(path) != manifest_bytes:
            with replace_file(path) as draft:
                draft.write_bytes(manifest_bytes)
        _flush([path] if pack is None else [pack, path])
        self._cache(manifest)
        return manifest.id

    def manifest(self, snapshot_id: str) -> Manifest:
        cached = self._cached.get(snapshot_id)
        if cached is not None:
            return cached
        # the id must be a hash: a name with slashes would be read from anywhere
        data = _read(self._manifests / snapshot_id) if snapshot_id.isalnum() else None
        if data is None:
            raise SnapshotException(
                f"there is no snapshot {snapshot_id!r} in {self._root}",
                hint="submit the folder again",
                snapshot_id=snapshot_id,
            )
        if sha256(data).hexdigest() != snapshot_id:
            raise SnapshotException(
                f"the manifest of snapshot {snapshot_id} in {self._root} is damaged",
                hint="submit the folder again to replace it",
                snapshot_id=snapshot_id,
            )
        manifest = Manifest.from_bytes(data)
        self._cache(manifest)
        return manifest

    def materialize(self, snapshot_id: str, into: Path) -> None:
        """Write a working copy to a new or empty folder, which appears only when it is complete."""
        manifest = self.manifest(snapshot_id)
        if into.is_dir() and any(into.iterdir()):
            raise SnapshotException(
                f"{into} is not empty",
                hint="pass a new or empty folder for the copy of the snapshot",
                path=str(into),
            )
        into.parent.mkdir(parents=True, exist_ok=True)
        draft = into.with_name(f".{into.name}.part")  # a fixed name: replaces the remains of a crash
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            self._write_tree(manifest, os.fsencode(draft) + b"/")
            draft.rename(into)
        except BaseException as error:
            shutil.rmtree(draft, ignore_errors=True)
            if isinstance(error, OSError):
                raise write_error(into, error) from error
            raise

    def zip(self, snapshot_id: str, destination: Path) -> Path:
        """Write the snapshot as a zip file. Invalid UTF-8 in names, which zip cannot store, becomes ``%FF``."""
        from runyard.snapshots.zip_export import write_zip  # zipfile takes long to import and is rarely needed

        manifest = self.manifest(snapshot_id)
        with replace_file(destination) as draft:
            write_zip(draft, manifest, self._contents(manifest.files))
        return destination

    def read(self, snapshot_id: str, path: str) -> bytes:
        """The content of one file."""
        for entry in self.manifest(snapshot_id).entries:
            if entry.path == path and entry.kind == "file":
                return b"".join(chunk for _, chunks in self._contents([entry]) for chunk in chunks)
        raise SnapshotException(
            f"there is no file {path!r} in snapshot {snapshot_id[:12]}",
            hint="links and folders have no content",
            path=path,
        )

    def _cache(self, manifest: Manifest) -> None:
        with self._lock:
            self._cached.pop(manifest.id, None)
            self._cached[manifest.id] = manifest
            while len(self._cached) > _CACHED_MANIFESTS:
                del self._cached[next(iter(self._cached))]

    def _add_pack(self, source: Path) -> Path:
        try:
            pack = Pack(source)
        except SnapshotException:
            source.unlink(missing_ok=True)
            raise
        target = self._packs / f"{pack.name}.pack"
        with self._lock:
            self._packs.mkdir(parents=True, exist_ok=True)
            try:
                source.rename(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise write_error(target, error) from error
                with replace_file(target) as draft:
                    shutil.copyfile(source, draft)
                source.unlink()
            target.with_suffix(".bad").unlink(missing_ok=True)  # listed contents that this pack replaces
            pack.path = target
            self._blobs.update(dict.fromkeys(pack.locations, pack))
            self._loaded.add(target.name)
        return target

    def _load_new_packs(self) -> bool:
        """Load packs that were added to the folder; True if there were any."""
        try:
            changed_ns = self._packs.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if changed_ns == self._packs_changed_ns:
            return False
        if self._packs_changed_ns < 0:
            self._remove_abandoned_uploads()
        self._packs_changed_ns = changed_ns
        with os.scandir(self._packs) as listing:
            names = {entry.name for entry in listing if entry.name.endswith(".pack")} - self._loaded
        for name in names:
            with contextlib.suppress(SnapshotException):  # the contents of a damaged pack count as missing
                pack = Pack(self._packs / name)
                self._loaded.add(name)
                damaged = _damaged_digests(pack.path)
                self._blobs.update(dict.fromkeys(pack.locations.keys() - damaged if damaged else pack.locations, pack))
        return bool(names)

    def _remove_abandoned_uploads(self) -> None:
        """Remove files that killed clients left in the incoming folder."""
        with contextlib.suppress(OSError), os.scandir(self._root / "incoming") as listing:
            for entry in listing:
                if entry.stat(follow_symlinks=False).st_mtime < now() - _ABANDONED_AFTER_S:
                    Path(entry.path).unlink()

    def _write_tree(self, manifest: Manifest, base: bytes) -> None:
        created: set[bytes] = {base[:-1]}
        for entry in manifest.entries:
            path = base + encode(entry.path)
            folder = path if entry.kind == "dir" else path[: path.rindex(b"/")]
            if folder not in created:
                Path(os.fsdecode(folder)).mkdir(parents=True, exist_ok=True)
                created.add(folder)
        for entry, chunks in self._contents(manifest.files):
            mode = 0o777 if entry.executable else 0o666  # reduced by the umask
            file = os.open(base + encode(entry.path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            try:
                for chunk in chunks:
                    _write_all(file, chunk)
            finally:
                os.close(file)
        # links come last, so that no file is written through one
        for entry in manifest.entries:
            if entry.kind == "link":
                Path(os.fsdecode(base + encode(entry.path))).symlink_to(os.fsdecode(encode(entry.target)))

    def _contents(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Iterable[bytes]]]:
        """Yield each file with its content in chunks, in the order of the packs."""
        by_pack: dict[Pack, list[tuple[BlobLocation, bytes, Entry]]] = {}
        for entry in entries:
            digest = bytes.fromhex(entry.digest)
            pack = self._pack_with(digest, entry)
            by_pack.setdefault(pack, []).append((pack.locations[digest], digest, entry))
        for pack, blobs in by_pack.items():
            with pack.open() as pack_file:
                for location, digest, entry in sorted(blobs):
                    yield entry, self._read_blob(pack_file, pack, location, digest)

    def _pack_with(self, digest: bytes, entry: Entry) -> Pack:
        with self._lock:
            if digest not in self._blobs:
                self._load_new_packs()
            pack = self._blobs.get(digest)
        if pack is None:
            raise SnapshotException(
                f"the content of {entry.path!r} is missing in {self._root}",
                hint="submit the folder again to restore it",
                path=entry.path,
            )
        return pack

    def _read_blob(self, pack_file: OpenPack, pack: Pack, location: BlobLocation, digest: bytes) -> Iterator[bytes]:
        try:
            if location.size <= CHUNK_BYTES:
                yield pack_file.read(digest, location)
            else:
                yield from pack_file.chunks(digest, location)
        except SnapshotException:
            self._record_damage(pack, digest)
            raise

    def _record_damage(self, pack: Pack, digest: bytes) -> None:
        """Treat a damaged content as missing, so that the next submission uploads it again."""
        with self._lock:
            if self._blobs.get(digest) is pack:
                del self._blobs[digest]
            with contextlib.suppress(OSError), pack.path.with_suffix(".bad").open("a") as file:
                file.write(digest.hex() + "\n")


def _read(path: Path) -> Optional[bytes]:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _flush(files: list[Path]) -> None:
    """Flush small files to disk now, and large ones in the background.

    Waiting for the disk would take longer than everything else. Contents lost in a power failure are detected as
    missing and uploaded again.
    """
    if sum(path.stat().st_size for path in files) > _FLUSH_NOW_BYTES:
        threading.Thread(target=_flush_each, args=(files,), name="runyard-flush", daemon=True).start()
    else:
        _flush_each(files)


def _flush_each(files: list[Path]) -> None:
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # replaced by another upload of the same snapshot, or removed
            flush_to_disk(path)


def _damaged_digests(pack: Path) -> set[bytes]:
    try:
        return {bytes.fromhex(line) for line in pack.with_suffix(".bad").read_text().split()}
    except OSError:
        return set()


def _write_all(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])
