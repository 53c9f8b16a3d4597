"""Uploads and downloads: requests to the yard, followed to their end with a progress display."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TextIO

from runyard import errors
from runyard.errors import DataException, RunyardException, UserErrorException, YardUnavailable
from runyard.sdk.core.validation import log

if TYPE_CHECKING:
    from runyard.client.connection import Connection
    from runyard.sdk.data.datastore import AbstractDatastore

_LINE_EVERY_S = 5.0
_WIDTH = 30
_TRIES = 20


def upload(
    store: AbstractDatastore,
    folder: Path,
    path: str,
    files: Optional[list[str]],
    *,
    overwrite: bool,
    show_progress: bool,
) -> dict[str, Any]:
    request = {
        "kind": "upload",
        "datastore": store.name,
        "local": str(folder),
        "path": path,
        "files": files,
        "overwrite": overwrite,
    }
    return run_transfer(store.workspace.connection, request, show_progress)


def download(store: AbstractDatastore, folder: Path, path: str, *, overwrite: bool, show_progress: bool) -> int:
    request = {"kind": "download", "datastore": store.name, "local": str(folder), "path": path, "overwrite": overwrite}
    transfer = run_transfer(store.workspace.connection, request, show_progress)
    return int(transfer["files_done"]) - int(transfer["files_skipped"])


def run_transfer(
    connection: Connection, request: dict[str, Any], show_progress: bool, stream: Optional[TextIO] = None
) -> dict[str, Any]:
    """Start a transfer and wait for its end. If the yard ends in between, it is restarted and resumes the transfer.

    Args:
        connection: Connection to the yard.
        request: The request body.
        show_progress: Display the progress.
        stream: Stream of the display; default: stdout.

    Returns:
        The final state of the transfer.

    Raises:
        DataException: The transfer failed or was canceled.
        KeyboardInterrupt: Ctrl-C cancels the transfer; files that have arrived stay.
    """
    if "RUNYARD_YARD_ELSEWHERE" in os.environ:
        raise UserErrorException(
            "the yard runs on another machine and cannot access the files of this process",
            hint="use as_upload() for files that a script writes, as_download() and as_mount() for files that it reads",
        )
    transfer_id = uuid.uuid4().hex
    progress = TransferProgress(request, stream or sys.stdout) if show_progress else None
    try:
        view = connection.post(f"/api/transfers/{transfer_id}", request)
        view = _follow(connection, transfer_id, view, progress)
    except KeyboardInterrupt:
        connection.post(f"/api/transfers/{transfer_id}/cancel")
        raise
    if progress is not None:
        progress.end(view)
    for warning in view["warnings"]:
        log.warning("%s", warning)
    if view["state"] == "failed":
        raise _error(view["error"])
    if view["state"] == "canceled":
        raise DataException(
            f"the {request['kind']} was canceled", hint="files that have arrived are complete; start it again to resume"
        )
    return view


def _follow(
    connection: Connection, transfer_id: str, view: dict[str, Any], progress: Optional[TransferProgress]
) -> dict[str, Any]:
    tries = 0
    while True:
        try:
            for name, event in connection.events(f"/api/transfers/{transfer_id}/follow"):
                tries = 0
                if progress is not None:
                    progress.update(event)
                if name == "end":
                    return dict(event)
        except (OSError, YardUnavailable):
            if tries >= _TRIES:
                raise
        tries += 1
        if tries > _TRIES:
            return view
        time.sleep(0.1)  # the yard ended: the next request starts it again, and it resumes the transfer


class TransferProgress:
    """A progress bar on a terminal; otherwise a line every few seconds."""

    def __init__(self, request: dict[str, Any], stream: TextIO) -> None:
        self._stream = stream
        self._verb = "Uploading" if request["kind"] == "upload" else "Downloading"
        self._where = request["datastore"] + (f"/{request['path']}" if request["path"] else "")
        self._is_terminal = stream.isatty()
        self._updated_at = time.monotonic()

    def update(self, view: dict[str, Any]) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K" + self._line(view))
            self._stream.flush()
        elif time.monotonic() - self._updated_at > _LINE_EVERY_S:
            self._updated_at = time.monotonic()
            self._stream.write(self._line(view) + "\n")
            self._stream.flush()

    def end(self, view: dict[str, Any]) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
        if view["state"] == "failed" and not view["files"]:
            self._stream.flush()
            return  # failed before it listed any file: the error message is enough
        moved = view["files_done"] - view["files_skipped"]
        if view["state"] == "done" and view["files"] and not moved:
            files = "1 file exists" if view["files"] == 1 else f"all {view['files']:,} files exist"
            verb = "upload" if self._verb == "Uploading" else "download"
            self._stream.write(f"Nothing to {verb}: {files} already, {size_text(view['bytes'])}, {self._where}\n")
            self._stream.flush()
            return
        skipped = f", {view['files_skipped']:,} existed already" if view["files_skipped"] else ""
        verb = "Uploaded" if self._verb == "Uploading" else "Downloaded"
        outcome = {"done": "", "failed": "Failed: ", "canceled": "Canceled: "}[view["state"]]
        self._stream.write(
            f"{outcome}{verb} {moved:,} of {view['files']:,} files, {size_text(view['bytes'])}, "
            f"{'to' if verb == 'Uploaded' else 'from'} {self._where}{skipped}\n"
        )
        self._stream.flush()

    def _line(self, view: dict[str, Any]) -> str:
        share = view["bytes_done"] / view["bytes"] if view["bytes"] else 0.0
        bar = "#" * int(share * _WIDTH)
        rate = view["bytes_done"] / view["seconds"] if view["seconds"] > 0.5 else 0.0
        speed = f", {size_text(rate)}/s" if rate else ""
        waiting = f"; {view['doing']}" if view["doing"] else ""
        return (
            f"{self._verb} {self._where} [{bar:.<{_WIDTH}}] {view['files_done']:,}/{view['files']:,} files, "
            f"{size_text(view['bytes_done'])} of {size_text(view['bytes'])}{speed}{waiting}"
        )


def size_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _error(body: dict[str, str]) -> RunyardException:
    kind = getattr(errors, body.get("code", ""), DataException)
    error: RunyardException = kind(body["message"], hint=body.get("hint", ""))
    return error
