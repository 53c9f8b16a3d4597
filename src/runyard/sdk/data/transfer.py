"""Uploads and downloads, seen from people's side: asked of the yard, followed to their end, shown as they go."""

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
    return carry(store.workspace.connection, request, show_progress)


def download(store: AbstractDatastore, folder: Path, path: str, *, overwrite: bool, show_progress: bool) -> int:
    request = {"kind": "download", "datastore": store.name, "local": str(folder), "path": path, "overwrite": overwrite}
    done = carry(store.workspace.connection, request, show_progress)
    return int(done["files_done"]) - int(done["files_skipped"])


def carry(
    connection: Connection, request: dict[str, Any], show_progress: bool, stream: Optional[TextIO] = None
) -> dict[str, Any]:
    """Blocks until it has ended; a Ctrl-C ends it, and what has arrived stays. A yard that goes away meanwhile is
    started again, and goes on with it."""
    if "RUNYARD_YARD_ELSEWHERE" in os.environ:
        raise UserErrorException(
            "this process is on another machine than the yard, which cannot see its files",
            hint="as_upload() sends what a script writes; as_download() and as_mount() bring what it reads",
        )
    transfer_id = uuid.uuid4().hex
    shown = Shown(request, stream or sys.stdout) if show_progress else None
    try:
        view = connection.post(f"/api/transfers/{transfer_id}", request)
        view = _followed(connection, transfer_id, view, shown)
    except KeyboardInterrupt:
        connection.post(f"/api/transfers/{transfer_id}/cancel")
        raise
    if shown is not None:
        shown.end(view)
    for warning in view["warnings"]:
        log.warning("%s", warning)
    if view["state"] == "failed":
        raise _error(view["error"])
    if view["state"] == "canceled":
        raise DataException(f"the {request['kind']} was canceled", hint="what has arrived is whole; ask again to go on")
    return view


def _followed(connection: Connection, transfer_id: str, view: dict[str, Any], shown: Optional[Shown]) -> dict[str, Any]:
    tries = 0
    while True:
        try:
            for name, told in connection.events(f"/api/transfers/{transfer_id}/follow"):
                tries = 0
                if shown is not None:
                    shown.tell(told)
                if name == "end":
                    return dict(told)
        except (OSError, YardUnavailable):
            if tries >= _TRIES:
                raise
        tries += 1
        if tries > _TRIES:
            return view
        time.sleep(0.1)  # the yard went away: the next one, which we start by asking, goes on


class Shown:
    """A bar on a terminal; elsewhere a line now and then."""

    def __init__(self, request: dict[str, Any], stream: TextIO) -> None:
        self._stream = stream
        self._verb = "Uploading" if request["kind"] == "upload" else "Downloading"
        self._where = request["datastore"] + (f"/{request['path']}" if request["path"] else "")
        self._is_terminal = stream.isatty()
        self._told_at = time.monotonic()

    def tell(self, view: dict[str, Any]) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K" + self._line(view))
            self._stream.flush()
        elif time.monotonic() - self._told_at > _LINE_EVERY_S:
            self._told_at = time.monotonic()
            self._stream.write(self._line(view) + "\n")
            self._stream.flush()

    def end(self, view: dict[str, Any]) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
        if view["state"] == "failed" and not view["files"]:
            self._stream.flush()
            return  # it came to nothing before a file was found: the error alone says so
        moved = view["files_done"] - view["files_skipped"]
        if view["state"] == "done" and view["files"] and not moved:
            there = "1 file was" if view["files"] == 1 else f"{view['files']:,} files were"
            done = "uploaded" if self._verb == "Uploading" else "downloaded"
            size = size_text(view["bytes"])
            self._stream.write(f"Nothing was {done}: {there} there already, {size}, of {self._where}\n")
            self._stream.flush()
            return
        skipped = f", {view['files_skipped']:,} were there already" if view["files_skipped"] else ""
        verb = "Uploaded" if self._verb == "Uploading" else "Downloaded"
        word = {"done": verb, "failed": f"{verb} until it failed", "canceled": f"{verb} until it was canceled"}
        self._stream.write(
            f"{word[view['state']]} {moved:,} of {view['files']:,} files, {size_text(view['bytes'])}, "
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


def _error(said: dict[str, str]) -> RunyardException:
    kind = getattr(errors, said.get("code", ""), DataException)
    error: RunyardException = kind(said["message"], hint=said.get("hint", ""))
    return error
