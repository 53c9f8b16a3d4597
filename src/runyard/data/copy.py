"""Uploads and downloads of many files: parallel, retried, verified, and atomic per file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TypeVar

from runyard import clock
from runyard.data.base import (
    PIECES_SUFFIX,
    DataStore,
    FileChanged,
    StoredFile,
    StoreUnreachable,
    TransferCanceled,
    damaged_file_error,
    disk_error,
    raise_if_canceled,
    recorded_digest,
    unlink_quietly,
)
from runyard.data.folder_store import digest_of
from runyard.errors import DataException
from runyard.posix import sha256
from runyard.store.datastores import FileDigests

RETRY_LIMIT = "RUNYARD_DATA_PATIENCE_S"  # how long a datastore may be unreachable before a transfer fails
_RETRY_LIMIT_S = 120.0
_RETRY_S = (0.2, 5.0)
_THREADS = 8
_MAX_CHANGES = 3  # attempts to download a file that is modified during the download
_RECORD_BATCH = 500
_SLOW_TO_HASH_BYTES = 100_000_000
_DOWNLOAD_LOCKS = [threading.Lock() for _ in range(256)]  # by draft: concurrent downloads of a file share its draft
T = TypeVar("T")


class Phase(Enum):
    TRANSFERRING = auto()
    LISTING = auto()
    HASHING = auto()
    RECONNECTING = auto()
    WAITING_FOR_DISK = auto()


@dataclass
class Progress:
    """Progress of a transfer; updated by several threads and read by others."""

    files: int = 0
    files_done: int = 0
    files_skipped: int = 0
    bytes: int = 0
    bytes_done: int = 0
    phase: Phase = Phase.TRANSFERRING
    activity: str = ""  # description of the phase; empty while transferring
    on_change: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_bytes(self, count: int) -> None:
        with self._lock:
            self.bytes_done += count
            if self.phase is Phase.HASHING:
                self.phase, self.activity = Phase.TRANSFERRING, ""
        self.on_change()

    def add_file(self, *, skipped: bool = False, size: int = 0) -> None:
        """Count a completed file. ``size`` is for files whose bytes were not counted by ``add_bytes``."""
        with self._lock:
            self.files_done += 1
            self.files_skipped += skipped
            self.bytes_done += size
        self.on_change()

    def enter(self, phase: Phase, activity: str = "") -> None:
        with self._lock:
            self.phase, self.activity = phase, activity
        self.on_change()


@dataclass(frozen=True)
class NamedStore:
    """An open datastore with its name and the recorded digests of its files."""

    name: str
    store: DataStore
    digests: FileDigests


@dataclass(frozen=True)
class Upload:
    source: Path
    path: str  # in the datastore
    size: int


def upload(
    target: NamedStore, files: Sequence[Upload], *, overwrite: bool, progress: Progress, canceled: threading.Event
) -> list[str]:
    """Upload files and return warnings. Files with the same content are skipped.

    Args:
        target: The datastore.
        files: The files to upload.
        overwrite: Replace existing files whose content differs; otherwise they are only counted in a warning.
        progress: Updated during the upload.
        canceled: Set by another thread to stop the upload.
    """
    existing = {stored.path: stored for stored in _existing_files(target, files, progress, canceled)}
    records = target.digests.in_folder(target.name, _common_folder([file.path for file in files]))
    recorder, different = _DigestRecorder(target), _Counter()

    def upload_file(file: Upload) -> None:
        stored = existing.get(file.path)
        if stored is not None and not overwrite:
            different.add(stored.size != file.size)
            progress.add_file(skipped=True, size=file.size)
            return
        if stored is not None and _is_same(target, stored, records.get(file.path), file.source, canceled):
            progress.add_file(skipped=True, size=file.size)
            return
        if file.size > _SLOW_TO_HASH_BYTES and not target.store.is_local:
            progress.enter(Phase.HASHING, f"hashing {file.source.name} before the upload")
        put = partial(target.store.put, file.path, file.source, progress.add_bytes, canceled)
        try:
            stored, digest = retry_while_unreachable(put, progress, canceled)
        except OSError as error:
            raise disk_error(error, file.source) from error
        recorder.add(stored, digest)
        progress.add_file()

    try:
        run_parallel(upload_file, files, canceled)
    finally:
        recorder.flush()
    if different.count:
        return [f"{different.count:,} existing files have another size and were not replaced; overwrite=True does"]
    return []


def download(
    source: NamedStore,
    files: Sequence[tuple[StoredFile, Path]],
    *,
    overwrite: bool,
    progress: Progress,
    canceled: threading.Event,
) -> None:
    """Download files to local paths. Existing files are skipped if equal, or if ``overwrite`` is False."""
    records = source.digests.in_folder(source.name, _common_folder([stored.path for stored, _ in files]))
    recorder = _DigestRecorder(source)

    def download_one(pair: tuple[StoredFile, Path]) -> None:
        stored, target = pair
        record = records.get(stored.path)
        if target.is_file() and (not overwrite or _is_same(source, stored, record, target, canceled)):
            progress.add_file(skipped=True, size=stored.size)
            return
        recorder.add(*download_file(source, stored, target, record, progress, canceled))
        progress.add_file()

    try:
        run_parallel(download_one, files, canceled)
    finally:
        recorder.flush()


def download_file(
    source: NamedStore,
    stored: StoredFile,
    target: Path,
    record: tuple[str, str] | None,
    progress: Progress,
    canceled: threading.Event,
) -> tuple[StoredFile, str]:
    """Download one file; return the downloaded version, which may be newer than ``stored``, and its digest."""
    for attempt in range(_MAX_CHANGES):
        # named by the version, so that an interrupted download of the same version can be resumed
        name = sha256.of_text(f"{source.name}\0{stored.path}\0{stored.etag}")[:16]
        draft = target.with_name(f".{name}.runyard-half")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _DOWNLOAD_LOCKS[hash(draft) % len(_DOWNLOAD_LOCKS)]:
                get = partial(source.store.get, stored, draft, progress.add_bytes, canceled)
                digest = retry_while_unreachable(get, progress, canceled)
                expected = recorded_digest(record, stored)
                if expected is not None and expected != digest:
                    progress.add_bytes(-stored.size)
                    raise damaged_file_error(source.name, stored, digest, expected)
                draft.chmod(0o644)
                draft.replace(target)
                return stored, digest
        except FileChanged:
            _remove_draft(draft)
            newer = retry_while_unreachable(partial(source.store.head, stored.path), progress, canceled)
            if newer is None:
                break
            if attempt == _MAX_CHANGES - 1:
                raise
            stored = newer
        except FileNotFoundError:
            break
        except (StoreUnreachable, TransferCanceled):
            raise  # the draft stays, for a later attempt to resume
        except DataException:
            _remove_draft(draft)
            raise
        except OSError as error:
            _remove_draft(draft)
            raise disk_error(error, target.parent) from error
    raise DataException(
        f"{stored.path} no longer exists in datastore {source.name!r}", hint="it was deleted during the transfer"
    )


def retry_while_unreachable(action: Callable[[], T], progress: Progress, canceled: threading.Event) -> T:
    """Retry an action until the datastore has been unreachable for too long, and report the wait as progress."""
    since, delay_s = clock.monotonic(), _RETRY_S[0]
    bytes_then = progress.bytes_done
    while True:
        try:
            result = action()
            if progress.phase is Phase.RECONNECTING:
                progress.enter(Phase.TRANSFERRING)
            return result
        except StoreUnreachable as error:
            now = clock.monotonic()
            if progress.bytes_done > bytes_then:  # some transfers succeed: the time limit starts again
                since, bytes_then = now, progress.bytes_done
            if now - since > float(os.environ.get(RETRY_LIMIT, _RETRY_LIMIT_S)):
                raise
            waited = clock.duration_text(now - since)
            progress.enter(Phase.RECONNECTING, f"no connection for {waited}: {error.message}")
            if canceled.wait(delay_s):
                raise_if_canceled(canceled)
            delay_s = min(delay_s * 2, _RETRY_S[1])


def list_store(store: DataStore, prefix: str, progress: Progress, canceled: threading.Event) -> list[StoredFile]:
    progress.enter(Phase.LISTING, "listing the datastore")
    try:
        return retry_while_unreachable(lambda: list(store.list(prefix)), progress, canceled)
    finally:
        progress.enter(Phase.TRANSFERRING)


def run_parallel(action: Callable[[T], None], items: Iterable[T], canceled: threading.Event) -> None:
    """Call ``action`` for all items in several threads; after the first failure no more are started."""
    pending, lock, failed = iter(items), threading.Lock(), threading.Event()
    end = object()

    def work() -> None:
        while not failed.is_set():
            raise_if_canceled(canceled)
            with lock:
                item = next(pending, end)
            if item is end:
                return
            try:
                action(item)  # type: ignore[arg-type]
            except BaseException:
                failed.set()
                raise

    with ThreadPoolExecutor(_THREADS, "copy") as pool:
        for future in [pool.submit(work) for _ in range(_THREADS)]:
            future.result()


def _existing_files(
    target: NamedStore, files: Sequence[Upload], progress: Progress, canceled: threading.Event
) -> list[StoredFile]:
    if not files:
        return []
    if target.store.is_local:  # looking up each file costs no more than listing all
        lookups = (target.store.head(file.path) for file in files)
        return [stored for stored in lookups if stored is not None]
    return list_store(target.store, _common_folder([file.path for file in files]), progress, canceled)


def _is_same(
    store: NamedStore, stored: StoredFile, record: tuple[str, str] | None, local: Path, canceled: threading.Event
) -> bool:
    """True if the local file is known to have the same content as the stored one."""
    if local.stat().st_size != stored.size:
        return False
    digest = recorded_digest(record, stored) or _stored_digest(store, stored, canceled)
    return digest is not None and digest_of(local, canceled)[0] == digest


def _stored_digest(store: NamedStore, stored: StoredFile, canceled: threading.Event) -> str | None:
    path = store.store.local_path(stored.path)
    if path is not None:
        return digest_of(path, canceled)[0]
    try:
        return store.store.stored_digest(stored)
    except (DataException, FileNotFoundError):
        return None


def _common_folder(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    folder = os.path.commonpath(paths) if len(paths) > 1 else os.path.dirname(paths[0])  # noqa: PTH120
    return folder if folder not in paths else os.path.dirname(folder)  # noqa: PTH120


def _remove_draft(draft: Path) -> None:
    unlink_quietly(draft)
    unlink_quietly(draft.with_name(draft.name + PIECES_SUFFIX))


class _DigestRecorder:
    """Records digests in the database in batches."""

    def __init__(self, store: NamedStore) -> None:
        self._store = store
        self._rows: list[tuple[str, str, str]] = []
        self._lock = threading.Lock()

    def add(self, stored: StoredFile, digest: str) -> None:
        if not stored.etag:
            return
        with self._lock:
            self._rows.append((stored.path, stored.etag, digest))
            is_disk_full = len(self._rows) >= _RECORD_BATCH
        if is_disk_full:
            self.flush()

    def flush(self) -> None:
        with self._lock:
            rows, self._rows = self._rows, []
        self._store.digests.add(self._store.name, rows)


class _Counter:
    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self, condition: bool) -> None:
        with self._lock:
            self.count += condition
