"""The datastore interface. In every datastore a file is complete or does not exist."""

from __future__ import annotations

import errno
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import DataException, UserErrorException

PIECES_SUFFIX = ".pieces"  # of the file that lists the pieces which a partial download already has
BytesCallback = Callable[[int], None]  # bytes since the last call; negative if some must be transferred again
ProgressCallback = Callable[[str], None]  # receives one line of text


@dataclass(frozen=True)
class StoredFile:
    """One version of a file in a datastore."""

    path: str  # relative to the root, with forward slashes
    size: int
    etag: str  # opaque; changes with the content
    modified_at: float = 0.0


class FileChanged(DataException):
    """The file was modified after it was listed or while it was read."""


class StoreUnreachable(DataException):
    """The datastore or the network is temporarily unavailable; the operation can be retried."""


class TransferCanceled(DataException):
    """The transfer was canceled by its owner."""


class DataStore(ABC):
    """A place that stores files.

    Methods block, are thread-safe and idempotent. They raise ``DataException``; only ``StoreUnreachable`` is worth a
    retry. Messages never contain credentials.
    """

    kind: str
    is_local = False  # on this machine's disk, so a copy in the cache has no benefit
    etags_are_digests = False  # the etag is the SHA-256 of the content, so no file must be read to compute it
    writable = True  # False: ``put`` and ``delete`` raise

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """List the file at this path, or all files below the folder at this path, in no particular order."""

    @abstractmethod
    def head(self, path: str) -> StoredFile | None:
        """Look up one file; None if it does not exist."""

    @abstractmethod
    def get(self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> str:
        """Download this version of a file to ``draft`` and return the SHA-256 of its content.

        If an interrupted call left a ``draft``, the download resumes where the datastore supports it.

        Raises:
            FileChanged: The datastore now has another version.
            FileNotFoundError: The file was deleted.
            DataException: The content differs from what was uploaded.
        """

    @abstractmethod
    def put(
        self, path: str, source: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> tuple[StoredFile, str]:
        """Upload a file, replacing an existing one atomically, and return it with its SHA-256.

        Raises:
            FileChanged: ``source`` was modified during the upload; the datastore still has the old file.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file if it exists."""

    def stored_digest(self, stored: StoredFile) -> str | None:
        """The SHA-256 that was stored with the file as metadata, if the datastore supports this."""
        return None

    def local_path(self, path: str) -> Path | None:
        """The file or folder on this machine's disk, under its own name; None for remote datastores."""
        return None

    def content_path(self, stored: StoredFile) -> Path | None:
        """A file on this machine's disk, of any name, with the content of ``stored``."""
        return self.local_path(stored.path)


def clean_path(path: str, what: str = "path") -> str:
    """Normalize a user's path: relative, one slash between parts, without ``./``.

    Raises:
        UserErrorException: The path leaves the datastore.
    """
    text = str(path).replace("\\", "/") if "/" not in str(path) else str(path)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in text:
        raise UserErrorException(
            f"{what} {path!r} leads out of the datastore",
            hint="use a path relative to the datastore's root, such as 'mnist'",
        )
    return "/".join(parts)


def safe_path(path: str) -> str:
    """Turn a name listed by a datastore into a relative path on disk. Backslashes are ordinary characters there."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise DataException(f"the file name {path!r} leads out of the datastore", hint="rename the file there")
    return "/".join(parts)


def check_path_conflicts(paths: Iterable[str]) -> None:
    """Refuse paths of which one is a file and also the folder of another: object stores allow this, disks do not."""
    files = set(paths)
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            if folder in files:
                raise UserErrorException(
                    f"{folder!r} is a file in the datastore, but also the folder of {path!r}: a disk cannot store both",
                    hint="rename one of them in the datastore, or choose a path that contains only one of them",
                )
            folders.add(folder)
            folder = folder.rpartition("/")[0]


def join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def recorded_digest(record: tuple[str, str] | None, stored: StoredFile) -> str | None:
    """The digest of an (etag, digest) record if it belongs to this version of the file."""
    return record[1] if record is not None and record[0] == stored.etag else None


def damaged_file_error(datastore: str, stored: StoredFile, actual: str, expected: str) -> DataException:
    return DataException(
        f"{stored.path} of datastore {datastore!r} is damaged: its content differs from what was uploaded",
        hint=f"expected SHA-256 {expected[:12]}…, got {actual[:12]}…; upload it again with overwrite=True",
    )


def changed_file_error(what: object) -> FileChanged:
    return FileChanged(f"{what} was modified while it was read", hint="try again when no process writes to it")


def disk_error(error: OSError, path: Path | str = "") -> DataException:
    """Translate an error of this machine's file system."""
    path = Path(str(error.filename or path or "this machine"))
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DataException(
            f"no space left for {path}: {error.strerror}",
            hint="free some space there and try again; completed files are kept, partial ones were removed",
        )
    hint = f"check the owner and permissions of {path.parent}" if isinstance(error, PermissionError) else ""
    return DataException(f"{path}: {error.strerror or error}", hint=hint)


def raise_if_canceled(canceled: threading.Event) -> None:
    if canceled.is_set():
        raise TransferCanceled("the transfer was canceled")


def unlink_quietly(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
