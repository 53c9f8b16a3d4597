"""A folder as a datastore. Its files are where people can see them, and a run reads them in place."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runyard.data.base import Changed, DataStore, Moved, Stored, drop, stop_if
from runyard.errors import DataException

CHUNK = 1 << 20
_HALF = ".runyard-half"  # ends the name of a file that is on its way; nobody is told of these


class FolderStore(DataStore):
    kind = "folder"
    is_here = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def list(self, prefix: str = "") -> Iterator[Stored]:
        top = self.root / prefix if prefix else self.root
        alone = self.head(prefix) if prefix else None
        if alone is not None:
            yield alone
            return
        if not self.root.is_dir():
            raise DataException(
                f"the folder {self.root} is not there", hint="is its disk mounted? else register it anew, elsewhere"
            )
        yield from _below(top, prefix)

    def head(self, path: str) -> Stored | None:
        try:
            about = (self.root / path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _explained(error, self.root / path) from error
        return _stored(path, about) if stat.S_ISREG(about.st_mode) else None

    def get(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        with _Read(self.root / stored.path) as source:
            if mark_of(os.fstat(source)) != stored.mark:
                raise _changed(self.root / stored.path)
            digest, size = _copy(source, half, moved, abandoned)
            if mark_of(os.fstat(source)) != stored.mark or size != stored.size:
                drop(half)
                moved(-size)
                raise _changed(self.root / stored.path)
        return digest

    def put(self, path: str, source: Path, moved: Moved, abandoned: threading.Event) -> tuple[Stored, str]:
        target = self.root / path
        half = target.with_name(f".{os.urandom(6).hex()}{_HALF}")
        with _Read(source) as reading:
            before = mark_of(os.fstat(reading))
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                digest, size = _copy(reading, half, moved, abandoned)
                if mark_of(os.fstat(reading)) != before:
                    moved(-size)
                    raise _changed(source)
                half.chmod(0o644)
                ours = half.stat().st_ino
                half.replace(target)
            except OSError as error:
                drop(half)
                raise _explained(error, target) from error
            except BaseException:
                drop(half)
                raise
        about = target.stat()
        stored = _stored(path, about)
        # another put the same path just now: its file, noted with the digest of ours, would seem damaged for ever
        return (stored if about.st_ino == ours else replace(stored, mark="")), digest

    def delete(self, path: str) -> None:
        try:
            (self.root / path).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise _explained(error, self.root / path) from error
        for folder in (self.root / path).parents:  # a blob store has no empty folders either
            if folder == self.root:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    def local_path(self, path: str) -> Path | None:
        return self.root / path if path else self.root


def mark_of(about: os.stat_result) -> str:
    # the time of the last change of any kind cannot be set by anybody, unlike that of the content
    return f"{about.st_ino:x}-{about.st_size:x}-{about.st_mtime_ns:x}-{about.st_ctime_ns:x}"


def digest_of(path: Path, abandoned: threading.Event | None = None) -> tuple[str, str]:
    """The SHA-256 of a file that stood still meanwhile, and its mark."""
    hashing = hashlib.sha256()
    with _Read(path) as source:
        before = mark_of(os.fstat(source))
        buffer = memoryview(bytearray(CHUNK))
        while size := os.readv(source, [buffer]):
            hashing.update(buffer[:size])
            if abandoned is not None:
                stop_if(abandoned)
        if mark_of(os.fstat(source)) != before:
            raise _changed(path)
    return hashing.hexdigest(), before


class _Read:
    """Open for reading, by number: a file object costs more than a small file does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> int:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise _explained(error, self._path) from error
        return self._file

    def __exit__(self, *raised: object) -> None:
        os.close(self._file)


def _copy(source: int, half: Path, moved: Moved, abandoned: threading.Event) -> tuple[str, int]:
    hashing, total = hashlib.sha256(), 0
    buffer = memoryview(bytearray(min(CHUNK, os.fstat(source).st_size + 1)))
    try:
        target = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _explained(error, half) from error
    try:
        while size := os.readv(source, [buffer]):
            stop_if(abandoned)
            hashing.update(buffer[:size])
            rest = buffer[:size]
            while rest:
                rest = rest[os.write(target, rest) :]
            total += size
            moved(size)
    except OSError as error:
        moved(-total)
        drop(half)
        raise _explained(error, half) from error
    finally:
        os.close(target)
    return hashing.hexdigest(), total


def _below(folder: Path, name: str) -> Iterator[Stored]:
    waiting = [(os.fspath(folder), name)]
    while waiting:
        place, below = waiting.pop()
        try:
            entries = os.scandir(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _explained(error, Path(place)) from error
        with entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, path))
                        continue
                    about = entry.stat() if entry.is_file() and not entry.name.endswith(_HALF) else None
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                        raise _explained(error, Path(entry.path)) from error
                    about = None  # removed meanwhile, or a link that leads nowhere
                if about is not None:
                    yield _stored(path, about)


def _stored(path: str, about: os.stat_result) -> Stored:
    return Stored(path, about.st_size, mark_of(about), about.st_mtime)


def _changed(path: Path) -> Changed:
    return Changed(f"{path} was written to while it was read", hint="try again when nobody writes to it")


def _explained(error: OSError, path: Path) -> DataException:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DataException(
            f"there is no room for {path.name} in {path.parent}: {error.strerror}",
            hint="free some space there and try again: what arrived is kept, and nothing half is left",
        )
    if isinstance(error, PermissionError):
        return DataException(f"{path}: {error.strerror}", hint=f"see who owns {path.parent}, and who may do what there")
    return DataException(f"{path}: {error.strerror or error}", hint="")
