"""Snapshots of code: upload and download."""

from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path
from typing import IO

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.errors import SnapshotException
from runyard.orchestrator.conductor import Conductor
from runyard.posix import atomic_write
from runyard.server.responses import json_response
from runyard.snapshots.manifest import Manifest
from runyard.snapshots.store import SnapshotStore
from runyard.wire.snapshots import OfferSnapshot, SnapshotResponse

_SNAPSHOT_ID = re.compile(r"[0-9a-f]{16,128}")
_PACK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_WRITE_BYTES = 1 << 20


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["snapshots"])
    store = conductor.components.snapshots

    @router.post("/snapshots", response_model=SnapshotResponse)
    def offer(request: OfferSnapshot) -> Response:
        """Store a snapshot, or list its missing content, which the client then uploads."""
        try:
            data = base64.b64decode(request.manifest, validate=True)
        except ValueError as error:
            raise SnapshotException(f"the manifest is not valid base64: {error}") from None
        if request.pack is not None:  # sent by clients of 0.1, which wrote the pack to the incoming folder
            if not _PACK_NAME.fullmatch(request.pack):
                raise SnapshotException(f"invalid pack name {request.pack!r}")
            return json_response(SnapshotResponse(store.add(data, store.incoming / request.pack)))
        manifest = Manifest.from_bytes(data)
        missing = store.missing(sorted(manifest.digests))
        if missing:
            atomic_write.write_bytes(_offered(store, manifest.id), data)
            return json_response(SnapshotResponse(None, missing))
        return json_response(SnapshotResponse(store.add(data)))

    @router.put("/snapshots/{snapshot_id}/content", response_model=SnapshotResponse)
    async def upload_content(snapshot_id: str, request: Request) -> Response:
        """Upload the missing content of an offered snapshot as one pack, and store the snapshot."""
        _offered(store, snapshot_id)  # an invalid id is rejected before any content is read
        with tempfile.NamedTemporaryFile(dir=store.incoming, suffix=".pack", delete=False) as pack:
            try:
                await _receive(request, pack)
                stored_id = await run_in_threadpool(_add, store, snapshot_id, Path(pack.name))
            except ClientDisconnect:
                return Response(status_code=499)
            finally:
                Path(pack.name).unlink(missing_ok=True)  # the store has moved it, unless something failed
        return json_response(SnapshotResponse(stored_id))

    @router.get("/snapshots/{snapshot_id}")
    def exists(snapshot_id: str) -> Response:
        return json_response({"snapshot_id": snapshot_id, "there": store.has(snapshot_id)})

    @router.get("/snapshots/{snapshot_id}/zip")
    def as_zip(snapshot_id: str) -> Response:
        with tempfile.NamedTemporaryFile(dir=store.incoming, suffix=".zip", delete=False) as file:
            path = Path(file.name)
        try:
            store.zip(snapshot_id, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return FileResponse(path, filename=f"{snapshot_id}.zip", background=BackgroundTask(path.unlink))

    return router


def _offered(store: SnapshotStore, snapshot_id: str) -> Path:
    """The manifest of a snapshot whose content is not complete yet."""
    if not _SNAPSHOT_ID.fullmatch(snapshot_id):
        raise SnapshotException(f"invalid snapshot id {snapshot_id!r}")
    return store.incoming / f"{snapshot_id}.manifest"


async def _receive(request: Request, file: IO[bytes]) -> None:
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= _WRITE_BYTES:  # a switch to another thread for each chunk would take most of the time
            await run_in_threadpool(file.write, bytes(buffer))
            buffer.clear()
    file.write(buffer)
    file.flush()


def _add(store: SnapshotStore, snapshot_id: str, pack: Path) -> str:
    offered = _offered(store, snapshot_id)
    try:
        manifest = offered.read_bytes()
    except FileNotFoundError:
        if store.has(snapshot_id):  # another client has uploaded the same snapshot in the meantime
            return snapshot_id
        raise SnapshotException("the snapshot was not offered", hint="send its manifest first") from None
    stored_id = store.add(manifest, pack)
    offered.unlink(missing_ok=True)
    return stored_id
