"""The files of runs, each content stored once under its hash."""

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
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.file_walk import walk

_CHUNK_BYTES = 1 << 20
INCOMING = "incoming-"


@dataclass(frozen=True)
class Artifact:
    path: str  # in the run, '/' between the parts
    digest: str
    size: int


@dataclass(frozen=True)
class KeptTree:
    artifacts: list[Artifact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what was left out, and why


class Artifacts:
    """A file is there whole or not at all, for every caller; keeping one again under the same name replaces it.

    A stored content shares no bytes with a file that a script can still write to: files are copied, or moved in when
    the caller says that nobody writes to them any more.
    """

    def __init__(self, database: Database, root: Path) -> None:
        self._database = database
        self._root = root
        self._held: Counter[str] = Counter()  # contents that are there, or will be, before anybody's row says so
        self._holding = threading.Lock()

    def clean_leftovers(self) -> None:
        """For the start of a yard, before anything is kept: what a killed one left half-copied is removed."""
        for left in self._root.glob(f"{INCOMING}*"):
            with suppress(OSError):
                left.unlink()

    def keep_file(self, run_id: str, path_in_run: str, source: Path, *, move: bool = False) -> Artifact:
        path = checked_path(path_in_run)
        try:
            artifact = self._take(path, source, move)
        except FileNotFoundError as error:
            raise UserErrorException(f"there is no file {str(source)!r} to keep as {path!r}") from error
        except (PermissionError, IsADirectoryError) as error:
            raise UserErrorException(f"the file {str(source)!r} cannot be read: {error.strerror}") from error
        self._record(run_id, [artifact])
        if move:
            _remove([source])
        return artifact

    def keep_tree(self, run_id: str, folder: Path, prefix: str = "", *, move: bool = False) -> KeptTree:
        """Every file below ``folder``, recorded in one transaction: all of them or, on a full disk, none."""
        start = checked_path(prefix) + "/" if prefix else ""
        found, warnings = walk(folder)
        kept: dict[str, Artifact] = {}
        for item in found:
            try:
                kept[start + item.name] = self._take(start + item.name, item.source, move and not item.linked)
            except OSError as error:
                warnings.append(f"{start}{item.name} was left out: {error.strerror or error}")
        artifacts = [kept[name] for name in sorted(kept)]
        self._record(run_id, artifacts)
        if move:
            # only now: had the yard been killed before, the next one would find the files where they were
            _remove(item.source for item in found if start + item.name in kept and not item.linked)
        return KeptTree(artifacts, warnings)

    def put_stream(self, run_id: str, path_in_run: str, chunks: Iterable[bytes]) -> Artifact:
        path = checked_path(path_in_run)
        artifact = self._store(path, chunks)
        self._record(run_id, [artifact])
        return artifact

    def take(self, path: str, source: Path) -> Artifact:
        """The content is stored, and nobody's yet: :func:`record` says whose it is, and then :meth:`release`."""
        return self._take(checked_path(path), source, final=False)

    def hold(self, artifacts: Iterable[Artifact]) -> None:
        """Their contents are not swept away until they are released."""
        with self._holding:
            self._held.update(artifact.digest for artifact in artifacts)

    def release(self, artifacts: Iterable[Artifact]) -> None:
        with self._holding:
            self._held.subtract(artifact.digest for artifact in artifacts)
            self._held = +self._held

    def sweep(self, artifacts: Iterable[Artifact]) -> None:
        """Of these contents, those go from the disk that nobody has any more, and nobody is about to have."""
        table = schema.artifacts.c
        with self._holding:
            left = {artifact.digest for artifact in artifacts} - self._held.keys()
            with self._database.read() as connection:
                for digest in left:
                    if connection.execute(select(table.digest).where(table.digest == digest).limit(1)).first() is None:
                        self._object(digest).unlink(missing_ok=True)

    def remove(self, run_id: str, path: str) -> None:
        """A file, or all files below a folder. Their contents stay for whoever reads them, or has the same ones."""
        wanted = checked_path(path)
        table = schema.artifacts
        below = table.c.path.startswith(wanted + "/", autoescape=True)
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.run_id == run_id, (table.c.path == wanted) | below))

    def has_below(self, run_id: str, folder: str) -> bool:
        table = schema.artifacts.c
        below = table.path.startswith(checked_path(folder) + "/", autoescape=True)
        with self._database.read() as connection:
            found = connection.execute(select(table.path).where(table.run_id == run_id, below).limit(1)).first()
        return found is not None

    def names(self, run_id: str) -> list[str]:
        return [artifact.path for artifact in self.files(run_id)]

    def files(self, run_id: str) -> list[Artifact]:
        table = schema.artifacts.c
        with self._database.read() as connection:
            rows = connection.execute(
                select(table.path, table.digest, table.size).where(table.run_id == run_id).order_by(table.path)
            )
            return [Artifact(*row) for row in rows]

    def path_of(self, run_id: str, path: str) -> Path:
        """The stored content's own file: to be read, never written to."""
        wanted = checked_path(path)
        table = schema.artifacts.c
        with self._database.read() as connection:
            digest = connection.execute(
                select(table.digest).where(table.run_id == run_id, table.path == wanted)
            ).scalar_one_or_none()
        if digest is None:
            names = self.names(run_id)
            raise UserErrorException(
                f"run {run_id!r} has no file {wanted!r}",
                hint=f"its files: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
                if names
                else "it has none",
                run_id=run_id,
                path=wanted,
            )
        return self._object(digest)

    def content(self, digest: str) -> Path:
        return self._object(digest)

    def open(self, run_id: str, path: str) -> BinaryIO:
        return open(self.path_of(run_id, path), "rb")

    def _take(self, path: str, source: Path, final: bool) -> Artifact:
        with open(source, "rb") as file:
            first = file.read(_CHUNK_BYTES)
            small = len(first) < _CHUNK_BYTES
            if not small and not final:
                return self._store(path, _chunks(first, file))
            digest, size = hashlib.sha256(first), len(first)
            while not small and (chunk := file.read(_CHUNK_BYTES)):
                digest.update(chunk)
                size += len(chunk)
            taken = Artifact(path, digest.hexdigest(), size)
            self.hold([taken])  # before it is looked for: else it could be swept away between the two
            if self._object(taken.digest).exists() or (final and self._link(source, taken.digest)):
                return taken
            self.release([taken])
            file.seek(0)
            return self._store(path, [first] if small else _chunks(b"", file))

    def _link(self, source: Path, digest: str) -> bool:
        """The file itself becomes the content; False when it must be copied."""
        status = source.lstat()
        # another name of the same file, or another owner, would be a way to write into the store
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid != os.geteuid():
            return False
        target = self._object(digest)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.chmod(0o400)
            os.link(source, target)
        except FileExistsError:
            return True
        except OSError:  # another file system
            return False
        return True

    def _store(self, path: str, chunks: Iterable[bytes]) -> Artifact:
        """Written beside its place, then renamed: a name in the store always holds the whole content."""
        with _explained(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=INCOMING, dir=self._root)
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                with _explained(self._root):
                    _write_all(handle, chunk)
            with _explained(self._root):
                os.fchmod(handle, 0o400)
                stored = Artifact(path, digest.hexdigest(), size)
                self.hold([stored])
                target = self._object(stored.digest)
                target.parent.mkdir(parents=True, exist_ok=True)
                Path(temporary).rename(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        finally:
            os.close(handle)
        return stored

    def _record(self, run_id: str, artifacts: Sequence[Artifact]) -> None:
        if artifacts:
            with self._database.write() as connection:
                record(connection, run_id, artifacts)
            self.release(artifacts)

    def _object(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:]


def record(connection: Connection, owner: str, artifacts: Iterable[Artifact]) -> None:
    """They are this owner's from now on, in a transaction of the caller's; names that it has already are replaced."""
    table = schema.artifacts
    rows = [
        {"run_id": owner, "path": a.path, "digest": a.digest, "size": a.size, "created_at": now()} for a in artifacts
    ]
    connection.execute(
        delete(table).where(table.c.run_id == owner, table.c.path == bindparam("replaced")),
        [{"replaced": row["path"]} for row in rows],
    )
    connection.execute(insert(table), rows)


def disown(connection: Connection, owner: str) -> None:
    """The owner has no files any more. Their contents stay for whoever has the same ones."""
    connection.execute(delete(schema.artifacts).where(schema.artifacts.c.run_id == owner))


def checked_path(path: str) -> str:
    """A name inside a run: relative, '/' between the parts, nothing that leads out of it."""
    text = os.fspath(path)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts or "\0" in text or not parts:
        raise UserErrorException(
            f"{text!r} cannot be the name of a run's file",
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
def _explained(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise HomeUnusable(
            f"the file could not be stored in {root}: {error.strerror or error}",
            hint="free some space on that disk and try again; nothing half was kept" if full else "check that folder",
            inner_exception=error,
        ) from error
