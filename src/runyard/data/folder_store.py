"""A local folder as a datastore. Its files have their own names, and runs read them in place."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runyard.data.base import (
    BytesCallback,
    DataStore,
    StoredFile,
    changed_file_error,
    disk_error,
    raise_if_canceled,
    unlink_quietly,
)
from runyard.errors import DataException
from runyard.posix import sha256

_DRAFT_SUFFIX = ".runyard-half"  # of files that are being written: specific enough to hide them from listings


class FolderStore(DataStore):
    kind = "folder"
    is_local = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        single_file = self.head(prefix) if prefix else None
        if single_file is not None:
            yield single_file
            return
        if not self.root.is_dir():
            raise DataException(
                f"the folder {self.root} does not exist",
                hint="check that its disk is mounted, or register the datastore with another folder",
            )
        yield from _walk(self.root / prefix if prefix else self.root, prefix)

    def head(self, path: str) -> StoredFile | None:
        try:
            status = (self.root / path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise disk_error(error, self.root / path) from error
        return _stored_file(path, status) if stat.S_ISREG(status.st_mode) else None

    def get(self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> str:
        path = self.root / stored.path
        with _open_to_read(path) as source:
            if etag_of(os.fstat(source)) != stored.etag:
                raise changed_file_error(path)
            digest, size = _copy(source, draft, on_progress, canceled)
            if etag_of(os.fstat(source)) != stored.etag or size != stored.size:
                unlink_quietly(draft)
                on_progress(-size)
                raise changed_file_error(path)
        return digest

    def put(
        self, path: str, source: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> tuple[StoredFile, str]:
        target = self.root / path
        draft = target.with_name(f".{os.urandom(6).hex()}{_DRAFT_SUFFIX}")
        with _open_to_read(source) as descriptor:
            etag = etag_of(os.fstat(descriptor))
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                digest, size = _copy(descriptor, draft, on_progress, canceled)
                if etag_of(os.fstat(descriptor)) != etag:
                    on_progress(-size)
                    raise changed_file_error(source)
                draft.chmod(0o644)
                inode = draft.stat().st_ino
                draft.replace(target)
            except OSError as error:
                unlink_quietly(draft)
                raise disk_error(error, target) from error
            except BaseException:
                unlink_quietly(draft)
                raise
        status = target.stat()
        stored = _stored_file(path, status)
        # a concurrent put may have replaced the file already: its etag recorded with our digest would make the
        # file appear damaged from then on
        return (stored if status.st_ino == inode else replace(stored, etag="")), digest

    def delete(self, path: str) -> None:
        try:
            (self.root / path).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise disk_error(error, self.root / path) from error
        for folder in (self.root / path).parents:  # remove empty folders, which object stores do not have either
            if folder == self.root:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    def local_path(self, path: str) -> Path | None:
        return self.root / path if path else self.root


def etag_of(status: os.stat_result) -> str:
    # includes the change time, which programs cannot set, unlike the modification time
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def digest_of(path: Path, canceled: threading.Event) -> tuple[str, str]:
    """The SHA-256 and the etag of a file. Raises ``FileChanged`` if it was modified during the read."""
    with _open_to_read(path) as source:
        etag = etag_of(os.fstat(source))
        digest = sha256.of_descriptor(source, lambda chunk: raise_if_canceled(canceled))
        if etag_of(os.fstat(source)) != etag:
            raise changed_file_error(path)
    return digest, etag


@contextmanager
def _open_to_read(path: Path) -> Iterator[int]:
    # a plain descriptor: creating a file object takes longer than reading a small file
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise disk_error(error, path) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy(source: int, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> tuple[str, int]:
    """Copy to ``draft``; return the digest and the size."""
    total = 0

    def write(chunk: memoryview) -> None:
        nonlocal total
        raise_if_canceled(canceled)
        total += len(chunk)
        on_progress(len(chunk))
        while chunk:
            chunk = chunk[os.write(target, chunk) :]

    try:
        target = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            return sha256.of_descriptor(source, write), total
        finally:
            os.close(target)
    except OSError as error:
        on_progress(-total)
        unlink_quietly(draft)
        raise disk_error(error, draft) from error


def _walk(folder: Path, name: str) -> Iterator[StoredFile]:
    pending = [(os.fspath(folder), name)]
    while pending:
        parent, parent_name = pending.pop()
        try:
            entries = os.scandir(parent)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise disk_error(error, parent) from error
        with entries:
            for entry in entries:
                path = f"{parent_name}/{entry.name}" if parent_name else entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, path))
                        continue
                    status = entry.stat() if entry.is_file() and not entry.name.endswith(_DRAFT_SUFFIX) else None
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                        raise disk_error(error, entry.path) from error
                    status = None  # deleted since it was listed, or a dangling link
                if status is not None:
                    yield _stored_file(path, status)


def _stored_file(path: str, status: os.stat_result) -> StoredFile:
    return StoredFile(path, status.st_size, etag_of(status), status.st_mtime)
