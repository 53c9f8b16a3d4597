"""Snapshots of code: upload and download."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from runyard.errors import SnapshotException
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response
from runyard.snapshots.manifest import Manifest
from runyard.wire.snapshots import OfferSnapshot, SnapshotResponse


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["snapshots"])
    store = conductor.components.snapshots

    @router.post("/snapshots", response_model=SnapshotResponse)
    def offer(request: OfferSnapshot) -> Response:
        """Store a snapshot, or list the missing content, which the client packs before it repeats the request."""
        data = base64.b64decode(request.manifest)
        pack = None
        if request.pack is not None:
            if Path(request.pack).name != request.pack:
                raise SnapshotException(f"invalid pack name {request.pack!r}")
            pack = store.incoming / request.pack
        else:
            digests = {entry.digest for entry in Manifest.from_bytes(data).entries if entry.digest}
            missing = store.missing(sorted(digests))
            if missing:
                return json_response(SnapshotResponse(None, missing))
        return json_response(SnapshotResponse(store.add(data, pack)))

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
