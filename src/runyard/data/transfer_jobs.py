"""Uploads and downloads as background jobs of the yard: recorded before they start, resumed by the next yard."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import OperationalError

from runyard import clock
from runyard.data import copy
from runyard.data.base import TransferCanceled, check_path_conflicts, clean_path, disk_error, join, safe_path
from runyard.data.copy import NamedStore, Phase, Progress, Upload
from runyard.data.registry import Datastores
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.json import from_json, to_json
from runyard.store.database import Database, is_disk_full
from runyard.store.datastores import TransferRecord, TransferStore
from runyard.wire.data import TransferRequest, TransferView

log = logging.getLogger(__name__)
RUNNING, DONE, FAILED, CANCELED = "running", "done", "failed", "canceled"
_PARALLEL_TRANSFERS = 4
_DISK_FULL_RETRY_S = 1.0


class Transfers:
    """``on_end`` is called with the id of each transfer that has ended."""

    def __init__(self, database: Database, stores: Datastores) -> None:
        self._records, self._stores = TransferStore(database), stores
        self.on_end: Callable[[str], None] = lambda transfer_id: None
        self._active: dict[str, _ActiveTransfer] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(_PARALLEL_TRANSFERS, "transfer")

    @property
    def busy(self) -> bool:
        return bool(self._active)

    def begin(self, transfer_id: str, request: TransferRequest) -> TransferView:
        """Validate and start a transfer. The same id again returns the existing transfer."""
        request = self._validate(request)
        if self._records.add(transfer_id, to_json(request)):
            self._start(transfer_id, request)
        return self.view(transfer_id)

    def recover(self) -> None:
        """Resume the transfers of the previous yard."""
        for record in self._records.running():
            self._start(record.transfer_id, from_json(TransferRequest, record.spec))

    def cancel(self, transfer_id: str) -> TransferView:
        """Cancel a transfer. Files that were transferred completely are kept."""
        active = self._active.get(transfer_id)
        if active is not None:
            active.canceled.set()
        return self.view(transfer_id)

    def view(self, transfer_id: str) -> TransferView:
        active = self._active.get(transfer_id)  # first: if it ends now, the record read below is complete
        record = self._records.get(transfer_id)
        if record is None:
            raise UserErrorException(f"no transfer {transfer_id!r}")
        return _view(record, active)

    def newest(self, limit: int = 50) -> list[TransferView]:
        return [_view(record, self._active.get(record.transfer_id)) for record in self._records.newest(limit)]

    def close(self) -> None:
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _validate(self, request: TransferRequest) -> TransferRequest:
        self._stores.record(request.datastore)
        request = replace(request, path=clean_path(request.path))
        if request.kind == "upload":
            self._stores.open_to_write(request.datastore)
            root = Path(request.local)
            if not root.is_dir():
                raise UserErrorException(f"{request.local!r} is not a folder", hint="use upload_files for single files")
            for name in request.files or []:
                if not (root / name).is_file():
                    raise UserErrorException(f"the file to upload does not exist: {str(root / name)!r}")
        elif request.kind == "download":
            if Path(request.local).exists() and not Path(request.local).is_dir():
                raise UserErrorException(f"cannot download to {request.local!r}: it is a file, not a folder")
        else:
            raise UserErrorException(f"kind must be 'upload' or 'download', got {request.kind!r}")
        return request

    def _start(self, transfer_id: str, request: TransferRequest) -> None:
        active = _ActiveTransfer()
        with self._lock:
            if transfer_id in self._active:
                return
            self._active[transfer_id] = active
        self._pool.submit(self._run, transfer_id, request, active)

    def _run(self, transfer_id: str, request: TransferRequest, active: _ActiveTransfer) -> None:
        state, error, warnings = DONE, None, []
        try:
            store = NamedStore(request.datastore, self._stores.open(request.datastore), self._stores.digests)
            transfer = _upload if request.kind == "upload" else _download
            warnings = transfer(store, request, active.progress, active.canceled)
        except TransferCanceled:
            state = CANCELED
        except (RunyardException, OSError) as failure:
            if isinstance(failure, OSError):  # of the local folder, such as a missing or unreadable file
                failure = disk_error(failure, request.local)
            state, error = FAILED, {"message": failure.message, "hint": failure.hint, "code": _code(failure)}
        except Exception as failure:  # a client that follows the transfer must receive unexpected errors, too
            log.exception("transfer %s", transfer_id)
            state = FAILED
            error = {"message": f"the yard failed: {failure}", "hint": "see yard.log", "code": "DataException"}
        active.duration_s = clock.monotonic() - active.started_at
        result = {**active.counts(), "error": error, "warnings": warnings}
        try:
            while not self._record_end(transfer_id, state, result):
                # retried until there is space: left in state "running", its clients would wait forever
                active.progress.enter(Phase.WAITING_FOR_DISK, "waiting for free space: the yard's disk is full")
                if self._closing.wait(_DISK_FULL_RETRY_S):
                    break  # the next yard resumes the transfer
        finally:
            with self._lock:
                self._active.pop(transfer_id, None)
            self.on_end(transfer_id)

    def _record_end(self, transfer_id: str, state: str, result: dict[str, Any]) -> bool:
        """False if the disk is full."""
        try:
            self._records.end(transfer_id, state, result)
        except OperationalError as error:
            if not is_disk_full(error):
                raise
            return False
        return True


class _ActiveTransfer:
    def __init__(self) -> None:
        self.progress = Progress()
        self.canceled = threading.Event()
        self.started_at = clock.monotonic()
        self.duration_s: float | None = None

    def counts(self) -> dict[str, Any]:
        progress = self.progress
        return {
            "files": progress.files,
            "files_done": progress.files_done,
            "files_skipped": progress.files_skipped,
            "bytes": progress.bytes,
            "bytes_done": min(progress.bytes_done, progress.bytes),
            "doing": progress.activity,
            "seconds": clock.monotonic() - self.started_at if self.duration_s is None else self.duration_s,
        }


def _upload(store: NamedStore, request: TransferRequest, progress: Progress, canceled: threading.Event) -> list[str]:
    files, warnings = files_to_upload(Path(request.local), request.path, request.files)
    progress.files, progress.bytes = len(files), sum(file.size for file in files)
    return warnings + copy.upload(store, files, overwrite=request.overwrite, progress=progress, canceled=canceled)


def files_to_upload(root: Path, target: str, names: list[str] | None = None) -> tuple[list[Upload], list[str]]:
    """The named files of a folder, or all its files; and warnings about entries that cannot be uploaded."""
    if names is not None:
        return [Upload(root / n, join(target, clean_path(n)), (root / n).stat().st_size) for n in names], []
    files, skipped = [], []
    pending = [(os.fspath(root), target)]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                path = join(prefix, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, path))
                elif entry.is_file():
                    files.append(Upload(Path(entry.path), path, entry.stat().st_size))
                else:
                    skipped.append(entry.path)
    files.sort(key=lambda file: file.path)
    if skipped:
        examples = ", ".join(sorted(skipped)[:3]) + (", …" if len(skipped) > 3 else "")
        return files, [f"skipped, because they are not files (links to folders, sockets, pipes): {examples}"]
    return files, []


def _download(store: NamedStore, request: TransferRequest, progress: Progress, canceled: threading.Event) -> list[str]:
    listing = copy.list_store(store.store, request.path, progress, canceled)
    if not listing and request.path:
        raise UserErrorException(
            f"no files at {request.path!r} in datastore {request.datastore!r}",
            hint=f"list the datastore with runyard data ls {request.datastore}",
        )
    check_path_conflicts(stored.path for stored in listing)
    progress.files, progress.bytes = len(listing), sum(stored.size for stored in listing)
    target = Path(request.local)
    files = [(stored, target / safe_path(stored.path)) for stored in sorted(listing, key=lambda s: s.path)]
    copy.download(store, files, overwrite=request.overwrite, progress=progress, canceled=canceled)
    return []


def _view(record: TransferRecord, active: _ActiveTransfer | None) -> TransferView:
    request = from_json(TransferRequest, record.spec)
    counts = record.result or (active.counts() if active is not None else {})
    return TransferView(
        transfer_id=record.transfer_id,
        kind=request.kind,
        datastore=request.datastore,
        path=request.path,
        local=request.local,
        state=record.state,
        created_at=record.created_at,
        **counts,
    )


def _code(error: RunyardException) -> str:
    """The name of the first class of the error that is in ``runyard.errors``, which clients know."""
    from runyard import errors

    names: list[str] = [k.__name__ for k in type(error).__mro__ if getattr(errors, k.__name__, None) is k]
    return names[0]
