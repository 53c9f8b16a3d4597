"""The stored files of runs: each content is stored once, named by its hash."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, bindparam, delete, insert, select

from runyard.clock import now
from runyard.errors import HomeUnusable, UserErrorException
from runyard.posix.regular_file import NotRegularFile, open_regular
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.content_check import is_intact
from runyard.tracking.file_walk import walk

_CHUNK_BYTES = 1 << 20
INCOMING_PREFIX = "incoming-"


@dataclass(frozen=True)
class Artifact:
    path: str  # in the run, separated by '/'
    digest: str
    size: int


@dataclass(frozen=True)
class FileSource:
    """A file to read, and the hash that its content must have."""

    path: Path
    digest: str | None = None  # None: a file of a running script, which may change


@dataclass(frozen=True)
class StoredFolder:
    artifacts: list[Artifact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # files that were left out, with the reason


class Artifacts:
    """Stores files atomically; storing a file again under the same name replaces it.

    A stored content never shares its data with a file that a script can still write to: files are copied, or moved if
    the caller guarantees that no process writes to them.
    """

    def __init__(self, database: Database, root: Path) -> None:
        self._database = database
        self._root = root
        self._held: Counter[str] = Counter()  # digests of contents that are not recorded in the database yet
        self._held_lock = threading.Lock()

    def clean_leftovers(self) -> None:
        """Remove partial copies of a killed yard. Call it at the start, before anything is stored."""
        for partial in self._root.glob(f"{INCOMING_PREFIX}*"):
            with suppress(OSError):
                partial.unlink()

    def store_file(self, run_id: str, path_in_run: str, source: Path, *, move: bool = False) -> Artifact:
        path = validate_path(path_in_run)
        try:
            artifact = self._add(path, source, move)
        except FileNotFoundError as error:
            raise UserErrorException(f"there is no file {str(source)!r} to store as {path!r}") from error
        except (PermissionError, NotRegularFile) as error:
            raise UserErrorException(f"cannot read the file {str(source)!r}: {error.strerror}") from error
        self._record(run_id, [artifact])
        if move:
            _remove([source])
        return artifact

    def store_folder(self, run_id: str, folder: Path, prefix: str = "", *, move: bool = False) -> StoredFolder:
        """Store all files below ``folder`` in one transaction: all of them or, if the disk is full, none."""
        start = validate_path(prefix) + "/" if prefix else ""
        files, warnings = walk(folder)
        stored: dict[str, Artifact] = {}
        for file in files:
            try:
                stored[start + file.name] = self._add(start + file.name, file.source, move and not file.via_link)
            except OSError as error:
                warnings.append(f"{start}{file.name} was left out: {error.strerror or error}")
        artifacts = [stored[name] for name in sorted(stored)]
        self._record(run_id, artifacts)
        if move:
            # after the transaction: if the yard is killed before, the next one still finds the files in the folder
            _remove(file.source for file in files if start + file.name in stored and not file.via_link)
        return StoredFolder(artifacts, warnings)

    def put_stream(self, run_id: str, path_in_run: str, chunks: Iterable[bytes]) -> Artifact:
        path = validate_path(path_in_run)
        artifact = self._store(path, chunks)
        self._record(run_id, [artifact])
        return artifact

    def add_content(self, path: str, source: Path) -> Artifact:
        """Store a content without an owner. Call :func:`record` to set the owner, then :meth:`release`."""
        return self._add(validate_path(path), source, move=False)

    def hold(self, artifacts: Iterable[Artifact]) -> None:
        """Protect contents from removal until they are released."""
        with self._held_lock:
            self._held.update(artifact.digest for artifact in artifacts)

    def release(self, artifacts: Iterable[Artifact]) -> None:
        with self._held_lock:
            self._held.subtract(artifact.digest for artifact in artifacts)
            self._held = +self._held

    def remove_unreferenced(self, artifacts: Iterable[Artifact]) -> None:
        """Delete those of the contents from disk that have no owner and are not held."""
        table = schema.artifacts.c
        with self._held_lock:
            candidates = {artifact.digest for artifact in artifacts} - self._held.keys()
            with self._database.read() as connection:
                for digest in candidates:
                    if connection.execute(select(table.digest).where(table.digest == digest).limit(1)).first() is None:
                        self.content(digest).unlink(missing_ok=True)

    def remove(self, run_id: str, path: str) -> None:
        """Remove a file, or all files below a folder, from a run. The contents stay on disk."""
        name = validate_path(path)
        table = schema.artifacts
        below = table.c.path.startswith(name + "/", autoescape=True)
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.run_id == run_id, (table.c.path == name) | below))

    def has_files_below(self, run_id: str, folder: str) -> bool:
        table = schema.artifacts.c
        below = table.path.startswith(validate_path(folder) + "/", autoescape=True)
        with self._database.read() as connection:
            row = connection.execute(select(table.path).where(table.run_id == run_id, below).limit(1)).first()
        return row is not None

    def names(self, run_id: str) -> list[str]:
        return [artifact.path for artifact in self.files(run_id)]

    def files(self, run_id: str) -> list[Artifact]:
        table = schema.artifacts.c
        with self._database.read() as connection:
            rows = connection.execute(
                select(table.path, table.digest, table.size).where(table.run_id == run_id).order_by(table.path)
            )
            return [Artifact(*row) for row in rows]

    def source_of(self, run_id: str, path: str) -> FileSource:
        """The file that contains the stored content; read-only. Readers verify the content."""
        name = validate_path(path)
        table = schema.artifacts.c
        with self._database.read() as connection:
            digest = connection.execute(
                select(table.digest).where(table.run_id == run_id, table.path == name)
            ).scalar_one_or_none()
        if digest is None:
            names = self.names(run_id)
            raise UserErrorException(
                f"run {run_id!r} has no file {name!r}",
                hint=f"its files: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
                if names
                else "it has none",
                run_id=run_id,
                path=name,
            )
        return FileSource(self.content(digest), digest)

    def content(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:]

    def _add(self, path: str, source: Path, move: bool) -> Artifact:
        # opened once: a pipe would block, and the name may lead to another file after it was listed
        with os.fdopen(open_regular(source if move else os.path.realpath(source)), "rb") as file:
            first = file.read(_CHUNK_BYTES)
            is_small = len(first) < _CHUNK_BYTES
            if not is_small and not move:
                return self._store(path, _chunks(first, file))
            digest, size = hashlib.sha256(first), len(first)
            while not is_small and (chunk := file.read(_CHUNK_BYTES)):
                digest.update(chunk)
                size += len(chunk)
            artifact = Artifact(path, digest.hexdigest(), size)
            self.hold([artifact])  # before the lookup: otherwise the content could be removed between the two
            # a damaged content is replaced: it would otherwise be taken for this file
            if is_intact(self.content(artifact.digest), artifact.digest) or (
                move and self._link(source, artifact.digest)
            ):
                return artifact
            self.release([artifact])
            file.seek(0)
            return self._store(path, [first] if is_small else _chunks(b"", file))

    def _link(self, source: Path, digest: str) -> bool:
        """Make the file itself the content; False if it must be copied."""
        status = source.lstat()
        # a file with another hard link, or of another owner, could still be written to
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid != os.geteuid():
            return False
        target = self.content(digest)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.chmod(0o400)
            os.link(source, target)
        except OSError:  # another file system, or a damaged content that must be replaced
            return False
        return True

    def _store(self, path: str, chunks: Iterable[bytes]) -> Artifact:
        """Write to a temporary file, then rename: a name in the store always has the complete content."""
        with _translate_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=INCOMING_PREFIX, dir=self._root)
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                with _translate_errors(self._root):
                    _write_all(handle, chunk)
            with _translate_errors(self._root):
                os.fchmod(handle, 0o400)
                artifact = Artifact(path, digest.hexdigest(), size)
                self.hold([artifact])
                target = self.content(artifact.digest)
                target.parent.mkdir(parents=True, exist_ok=True)
                Path(temporary).rename(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        finally:
            os.close(handle)
        return artifact

    def _record(self, run_id: str, artifacts: Sequence[Artifact]) -> None:
        if artifacts:
            with self._database.write() as connection:
                record(connection, run_id, artifacts)
            self.release(artifacts)


def record(connection: Connection, owner: str, artifacts: Iterable[Artifact]) -> None:
    """Set the owner of stored contents within the caller's transaction; existing names are replaced."""
    table = schema.artifacts
    rows = [
        {"run_id": owner, "path": a.path, "digest": a.digest, "size": a.size, "created_at": now()} for a in artifacts
    ]
    connection.execute(
        delete(table).where(table.c.run_id == owner, table.c.path == bindparam("replaced")),
        [{"replaced": row["path"]} for row in rows],
    )
    connection.execute(insert(table), rows)


def delete_records(connection: Connection, owner: str) -> None:
    """Remove all files of an owner. The contents stay on disk, because others may have the same ones."""
    connection.execute(delete(schema.artifacts).where(schema.artifacts.c.run_id == owner))


def validate_path(path: str) -> str:
    """Normalize the name of a run's file: relative, separated by '/', without '..'."""
    text = os.fspath(path)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts or "\0" in text or not parts:
        raise UserErrorException(
            f"invalid name of a run's file: {text!r}",
            hint="names are relative, such as outputs/model.pt, and do not lead out of the run with '..'",
        )
    return "/".join(parts)


def _remove(sources: Iterable[Path]) -> None:
    for source in sources:
        with suppress(OSError):
            source.unlink()


def _chunks(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield first
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def _translate_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise HomeUnusable(
            f"cannot store the file in {root}: {error.strerror or error}",
            hint="free some space on that disk and try again; partial files were removed"
            if is_full
            else "check that folder",
            inner_exception=error,
        ) from error
