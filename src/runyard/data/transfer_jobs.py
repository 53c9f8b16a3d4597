"""Uploads and downloads as jobs of the yard: written down before they begin, followed by whoever asks, gone on with
by the next yard."""

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
from runyard.data.base import Abandoned, clean_path, join, listed_path, refuse_clashes
from runyard.data.copy import Place, Progress, Upload
from runyard.data.network_errors import of_disk
from runyard.data.registry import Datastores
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.json import from_json, to_json
from runyard.store.database import Database, is_full
from runyard.store.datastores import TransferRecord, TransferStore
from runyard.wire.data import TransferRequest, TransferView

log = logging.getLogger(__name__)
RUNNING, DONE, FAILED, CANCELED = "running", "done", "failed", "canceled"
_SIDE_BY_SIDE = 4
_FULL_DISK_S = 1.0


class Transfers:
    """``on_end`` is called with the id of a transfer that has ended."""

    def __init__(self, database: Database, stores: Datastores) -> None:
        self._records, self._stores = TransferStore(database), stores
        self.on_end: Callable[[str], None] = lambda transfer_id: None
        self._going: dict[str, _Going] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(_SIDE_BY_SIDE, "transfer")

    @property
    def busy(self) -> bool:
        return bool(self._going)

    def begin(self, transfer_id: str, request: TransferRequest) -> TransferView:
        """Refused here if it cannot work; asked for again, it is the same one."""
        request = self._checked(request)
        if self._records.add(transfer_id, to_json(request)):
            self._go(transfer_id, request)
        return self.view(transfer_id)

    def recover(self) -> None:
        """For the start of a yard."""
        for record in self._records.running():
            self._go(record.transfer_id, from_json(TransferRequest, record.spec))

    def cancel(self, transfer_id: str) -> TransferView:
        """What has arrived stays: each file of it is whole."""
        going = self._going.get(transfer_id)
        if going is not None:
            going.abandoned.set()
        return self.view(transfer_id)

    def view(self, transfer_id: str) -> TransferView:
        going = self._going.get(transfer_id)  # looked for first: the record of one that ends meanwhile is complete
        record = self._records.get(transfer_id)
        if record is None:
            raise UserErrorException(f"no transfer {transfer_id!r}")
        return _view(record, going)

    def newest(self, limit: int = 50) -> list[TransferView]:
        return [_view(record, self._going.get(record.transfer_id)) for record in self._records.newest(limit)]

    def close(self) -> None:
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _checked(self, request: TransferRequest) -> TransferRequest:
        self._stores.record(request.datastore)
        request = replace(request, path=clean_path(request.path))
        if request.kind == "upload":
            self._stores.open_to_write(request.datastore)
            root = Path(request.local)
            if not root.is_dir():
                raise UserErrorException(
                    f"{request.local!r} is not a folder", hint="upload_files takes the names of files"
                )
            for name in request.files or []:
                if not (root / name).is_file():
                    raise UserErrorException(f"there is no file {str(root / name)!r} to upload")
        elif request.kind == "download":
            if Path(request.local).exists() and not Path(request.local).is_dir():
                raise UserErrorException(f"{request.local!r} is a file: a folder is needed to download to")
        else:
            raise UserErrorException(f"a transfer is an upload or a download, not {request.kind!r}")
        return request

    def _go(self, transfer_id: str, request: TransferRequest) -> None:
        going = _Going()
        with self._lock:
            if transfer_id in self._going:
                return
            self._going[transfer_id] = going
        self._pool.submit(self._work, transfer_id, request, going)

    def _work(self, transfer_id: str, request: TransferRequest, going: _Going) -> None:
        state, error, warnings = DONE, None, []
        try:
            place = Place(request.datastore, self._stores.open(request.datastore), self._stores.seen)
            work = _upload if request.kind == "upload" else _download
            warnings = work(place, request, going.progress, going.abandoned)
        except Abandoned:
            state = CANCELED
        except (RunyardException, OSError) as failure:
            if isinstance(failure, OSError):  # of this machine: a folder that is gone, or cannot be read
                failure = of_disk(failure, request.local)
            state, error = FAILED, {"message": failure.message, "hint": failure.hint, "code": _code(failure)}
        except Exception as failure:  # a transfer must not wait for ever because of something that nobody thought of
            log.exception("transfer %s", transfer_id)
            state = FAILED
            error = {"message": f"the yard failed: {failure}", "hint": "see yard.log", "code": "DataException"}
        going.ended_s = clock.monotonic() - going.began
        result = {**going.told(), "error": error, "warnings": warnings}
        try:
            while not self._note_end(transfer_id, state, result):
                # somebody may make room: left "running", whoever follows it would wait for ever
                going.progress.say("waiting for room on the yard's disk, which is full")
                if self._closing.wait(_FULL_DISK_S):
                    break  # the next yard goes on with it
        finally:
            with self._lock:
                self._going.pop(transfer_id, None)
            self.on_end(transfer_id)

    def _note_end(self, transfer_id: str, state: str, result: dict[str, Any]) -> bool:
        """False: there was no room to write it down."""
        try:
            self._records.end(transfer_id, state, result)
        except OperationalError as error:
            if not is_full(error):
                raise
            return False
        return True


class _Going:
    def __init__(self) -> None:
        self.progress = Progress()
        self.abandoned = threading.Event()
        self.began = clock.monotonic()
        self.ended_s: float | None = None

    def told(self) -> dict[str, Any]:
        progress = self.progress
        return {
            "files": progress.files,
            "files_done": progress.files_done,
            "files_skipped": progress.files_skipped,
            "bytes": progress.bytes,
            "bytes_done": min(progress.bytes_done, progress.bytes),
            "doing": progress.doing,
            "seconds": clock.monotonic() - self.began if self.ended_s is None else self.ended_s,
        }


def _upload(place: Place, request: TransferRequest, progress: Progress, abandoned: threading.Event) -> list[str]:
    files, warnings = to_upload(Path(request.local), request.path, request.files)
    progress.files, progress.bytes = len(files), sum(file.size for file in files)
    return warnings + copy.upload(place, files, overwrite=request.overwrite, progress=progress, abandoned=abandoned)


def to_upload(root: Path, below: str, names: list[str] | None = None) -> tuple[list[Upload], list[str]]:
    """All files of a folder, or those that are named; and warnings: what is none."""
    if names is not None:
        return [Upload(root / n, join(below, clean_path(n)), (root / n).stat().st_size) for n in names], []
    files, left_out = [], []
    waiting = [(os.fspath(root), below)]
    while waiting:
        place, path = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                name = f"{path}/{entry.name}" if path else entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, name))
                elif entry.is_file():
                    files.append(Upload(Path(entry.path), name, entry.stat().st_size))
                else:
                    left_out.append(entry.path)
    files.sort(key=lambda file: file.path)
    if left_out:
        some = ", ".join(sorted(left_out)[:3]) + (", …" if len(left_out) > 3 else "")
        return files, [f"left out, because they are no files (links to folders, sockets, pipes): {some}"]
    return files, []


def _download(place: Place, request: TransferRequest, progress: Progress, abandoned: threading.Event) -> list[str]:
    progress.say("looking what is there")
    found = copy.patiently(lambda: list(place.store.list(request.path)), progress, abandoned)
    progress.say("")
    if not found and request.path:
        raise UserErrorException(
            f"there is nothing at {request.path!r} in datastore {request.datastore!r}",
            hint=f"runyard data ls {request.datastore} shows what is there",
        )
    refuse_clashes(stored.path for stored in found)
    progress.files, progress.bytes = len(found), sum(stored.size for stored in found)
    target = Path(request.local)
    files = [(stored, target / listed_path(stored.path)) for stored in sorted(found, key=lambda s: s.path)]
    copy.download(place, files, overwrite=request.overwrite, progress=progress, abandoned=abandoned)
    return []


def _view(record: TransferRecord, going: _Going | None) -> TransferView:
    request = from_json(TransferRequest, record.spec)
    told = record.result or (going.told() if going is not None else {})
    return TransferView(
        transfer_id=record.transfer_id,
        kind=request.kind,
        datastore=request.datastore,
        path=request.path,
        local=request.local,
        state=record.state,
        created_at=record.created_at,
        **told,
    )


def _code(error: RunyardException) -> str:
    from runyard import errors

    known: list[str] = [k.__name__ for k in type(error).__mro__ if getattr(errors, k.__name__, None) is k]
    return known[0]
