"""The yard's side: snapshots in a folder, each content stored once.

    <root>/incoming/                 packs that are being handed over
    <root>/packs/<name>.pack         contents; never changed once there. <name>.bad beside it names damaged ones
    <root>/manifests/<snapshot id>   what each snapshot consists of

A manifest is written after everything it names is there, so a snapshot that can be seen is whole.
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
from runyard.snapshots.atomic import cannot_write, flush_to_disk, whole_file
from runyard.snapshots.manifest import Entry, Manifest, encode
from runyard.snapshots.pack import CHUNK_BYTES, OpenPack, Pack, Place

_FORGOTTEN_AFTER_S = 24 * 3600.0
_FLUSHED_AT_ONCE_BYTES = 16 << 20


class Depot:
    """Safe to use from many threads. Everything is on disk: a new Depot on the same folder knows the same."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._packs = root / "packs"
        self._manifests = root / "manifests"
        self._lock = threading.RLock()
        self._blobs: dict[bytes, Pack] = {}
        self._loaded: set[str] = set()  # names of packs
        self._packs_changed_ns = -1
        self._whole: dict[str, Manifest] = {}  # snapshots that were checked, in order of their last use

    @property
    def incoming(self) -> Path:
        """Where a pack is written that `add` will take: on the same disk, so that taking it is a rename."""
        folder = self._root / "incoming"
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def has(self, snapshot_id: str) -> bool:
        """Whether the snapshot is there, with all that it consists of."""
        with contextlib.suppress(SnapshotException):
            return not self._lacking(self.manifest(snapshot_id))
        return False

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Those that are not stored, each once."""
        with self._lock:
            lacking = [digest for digest in dict.fromkeys(digests) if bytes.fromhex(digest) not in self._blobs]
            if not lacking or not self._refresh():
                return lacking
            return [digest for digest in lacking if bytes.fromhex(digest) not in self._blobs]

    def add(self, manifest_bytes: bytes, pack_path: Optional[Path] = None) -> str:
        """Stores a snapshot; the pack is moved away. Doing it twice, or from many threads at once, is fine.

        Raises SnapshotException if the manifest or the pack is damaged or a content is missing.
        """
        manifest = Manifest.from_bytes(manifest_bytes)
        kept = None if pack_path is None else self._take_pack(pack_path)
        lacking = self._lacking(manifest)
        if lacking:
            raise SnapshotException(
                f"{len(lacking)} of the contents of snapshot {manifest.id[:12]} were not handed over, "
                f"{lacking[0][:12]} among them",
                hint="submit the folder again",
                missing=lacking,
            )
        path = self._manifests / manifest.id
        if _content(path) != manifest_bytes:
            with whole_file(path, durable=False) as partial:
                partial.write_bytes(manifest_bytes)
        _flush([path] if kept is None else [kept, path])
        self._remember(manifest)
        return manifest.id

    def manifest(self, snapshot_id: str) -> Manifest:
        known = self._whole.get(snapshot_id)
        if known is not None:
            return known
        # only a hash can be asked for: a name with slashes would be read from anywhere
        data = _content(self._manifests / snapshot_id) if snapshot_id.isalnum() else None
        if data is None:
            raise SnapshotException(
                f"there is no snapshot {snapshot_id!r} in {self._root}",
                hint="submit the folder again",
                snapshot_id=snapshot_id,
            )
        if sha256(data).hexdigest() != snapshot_id:
            raise SnapshotException(
                f"the manifest of snapshot {snapshot_id} in {self._root} is damaged",
                hint="submit the folder again: it is stored anew",
                snapshot_id=snapshot_id,
            )
        manifest = Manifest.from_bytes(data)
        self._remember(manifest)
        return manifest

    def materialize(self, snapshot_id: str, into: Path) -> None:
        """Writes a working copy, the caller's to change. ``into`` is new or empty; it appears only when complete."""
        manifest = self.manifest(snapshot_id)
        if into.is_dir() and any(into.iterdir()):
            raise SnapshotException(
                f"{into} is not empty",
                hint="give a new or an empty folder for the copy of the snapshot",
                path=str(into),
            )
        into.parent.mkdir(parents=True, exist_ok=True)
        partial = into.with_name(f".{into.name}.part")  # the same name again: what a crash left there is replaced
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            self._write_tree(manifest, os.fsencode(partial) + b"/")
            partial.rename(into)
        except BaseException as error:
            shutil.rmtree(partial, ignore_errors=True)
            if isinstance(error, OSError):
                raise cannot_write(into, error) from error
            raise

    def zip(self, snapshot_id: str, destination: Path) -> Path:
        """Writes the snapshot as a zip file. Odd bytes in names, which it cannot hold, become ``%FF``."""
        from runyard.snapshots.zip_export import write_zip  # zipfile takes long to import and is rarely needed

        manifest = self.manifest(snapshot_id)
        with whole_file(destination, durable=False) as partial:
            write_zip(partial, manifest, self._contents(manifest.files))
        return destination

    def read(self, snapshot_id: str, path: str) -> bytes:
        """The content of one file."""
        for entry in self.manifest(snapshot_id).entries:
            if entry.path == path and entry.kind == "file":
                return b"".join(chunk for _, chunks in self._contents([entry]) for chunk in chunks)
        raise SnapshotException(
            f"there is no file {path!r} in snapshot {snapshot_id[:12]}",
            hint="links and folders have no content of their own",
            path=path,
        )

    def _lacking(self, manifest: Manifest) -> list[str]:
        return self.missing(manifest.digests)

    def _remember(self, manifest: Manifest) -> None:
        with self._lock:
            self._whole.pop(manifest.id, None)
            self._whole[manifest.id] = manifest
            while len(self._whole) > 16:
                del self._whole[next(iter(self._whole))]

    def _take_pack(self, source: Path) -> Path:
        try:
            pack = Pack(source)
        except SnapshotException:
            source.unlink(missing_ok=True)
            raise
        kept = self._packs / f"{pack.name}.pack"
        with self._lock:
            self._packs.mkdir(parents=True, exist_ok=True)
            try:
                source.rename(kept)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise cannot_write(kept, error) from error
                with whole_file(kept, durable=False) as partial:
                    shutil.copyfile(source, partial)
                source.unlink()
            # one that was damaged is replaced by this one
            kept.with_suffix(".bad").unlink(missing_ok=True)
            pack.path = kept
            self._blobs.update(dict.fromkeys(pack.places, pack))
            self._loaded.add(kept.name)
        return kept

    def _refresh(self) -> bool:
        """Loads the packs that are new on disk; whether there were any."""
        try:
            changed_ns = self._packs.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if changed_ns == self._packs_changed_ns:
            return False
        if self._packs_changed_ns < 0:
            self._sweep_incoming()
        self._packs_changed_ns = changed_ns
        with os.scandir(self._packs) as listing:
            names = {entry.name for entry in listing if entry.name.endswith(".pack")} - self._loaded
        for name in names:
            with contextlib.suppress(SnapshotException):  # a damaged pack holds nothing: what it had is missing again
                pack = Pack(self._packs / name)
                self._loaded.add(name)
                bad = _bad_ones(pack.path)
                self._blobs.update(dict.fromkeys(pack.places.keys() - bad if bad else pack.places, pack))
        return bool(names)

    def _sweep_incoming(self) -> None:
        """Removes what a client that was killed left there."""
        with contextlib.suppress(OSError), os.scandir(self._root / "incoming") as listing:
            for entry in listing:
                if entry.stat(follow_symlinks=False).st_mtime < now() - _FORGOTTEN_AFTER_S:
                    Path(entry.path).unlink()

    def _write_tree(self, manifest: Manifest, base: bytes) -> None:
        made: set[bytes] = {base[:-1]}
        for entry in manifest.entries:
            path = base + encode(entry.path)
            folder = path if entry.kind == "dir" else path[: path.rindex(b"/")]
            if folder not in made:
                Path(os.fsdecode(folder)).mkdir(parents=True, exist_ok=True)
                made.add(folder)
        for entry, chunks in self._contents(manifest.files):
            mode = 0o777 if entry.executable else 0o666  # the umask takes its part
            file = os.open(base + encode(entry.path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            try:
                for chunk in chunks:
                    _write_all(file, chunk)
            finally:
                os.close(file)
        # links come last: nothing can be written through one
        for entry in manifest.entries:
            if entry.kind == "link":
                Path(os.fsdecode(base + encode(entry.path))).symlink_to(os.fsdecode(encode(entry.target)))

    def _contents(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Iterable[bytes]]]:
        """Each file with its content in pieces, in the order in which the packs hold them."""
        by_pack: dict[Pack, list[tuple[Place, bytes, Entry]]] = {}
        for entry in entries:
            digest = bytes.fromhex(entry.digest)
            pack = self._pack_with(digest, entry)
            by_pack.setdefault(pack, []).append((pack.places[digest], digest, entry))
        for pack, wanted in by_pack.items():
            with pack.open() as opened:
                for place, digest, entry in sorted(wanted):
                    yield entry, self._checked(opened, pack, place, digest)

    def _pack_with(self, digest: bytes, entry: Entry) -> Pack:
        with self._lock:
            if digest not in self._blobs:
                self._refresh()
            pack = self._blobs.get(digest)
        if pack is None:
            raise SnapshotException(
                f"the content of {entry.path!r} is not in {self._root} any more",
                hint="submit the folder again: it is stored anew",
                path=entry.path,
            )
        return pack

    def _checked(self, opened: OpenPack, pack: Pack, place: Place, digest: bytes) -> Iterator[bytes]:
        try:
            if place.size <= CHUNK_BYTES:
                yield opened.read(digest, place)
            else:
                yield from opened.chunks(digest, place)
        except SnapshotException:
            self._set_aside(pack, digest)
            raise

    def _set_aside(self, pack: Pack, digest: bytes) -> None:
        """Remembers that this copy is damaged: the next submission finds it missing, and hands it over again."""
        with self._lock:
            if self._blobs.get(digest) is pack:
                del self._blobs[digest]
            with contextlib.suppress(OSError), pack.path.with_suffix(".bad").open("a") as file:
                file.write(digest.hex() + "\n")


def _content(path: Path) -> Optional[bytes]:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _flush(files: list[Path]) -> None:
    """Small files are on the disk when this returns. Big ones follow in the background: waiting for the disk would take
    longer than all the rest, and what a power cut takes away is found missing and handed over again."""
    if sum(path.stat().st_size for path in files) > _FLUSHED_AT_ONCE_BYTES:
        threading.Thread(target=_flush_each, args=(files,), name="runyard-flush", daemon=True).start()
    else:
        _flush_each(files)


def _flush_each(files: list[Path]) -> None:
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # replaced by the same snapshot from elsewhere, or removed
            flush_to_disk(path)


def _bad_ones(pack: Path) -> set[bytes]:
    try:
        return {bytes.fromhex(line) for line in pack.with_suffix(".bad").read_text().split()}
    except OSError:
        return set()


def _write_all(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])
