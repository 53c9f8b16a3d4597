"""Code as it was: taking it in, giving it back."""

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
    depot = conductor.rooms.snapshots

    @router.post("/snapshots", response_model=SnapshotResponse)
    def offer(request: OfferSnapshot) -> Response:
        """Take a snapshot in; or say which content is missing, to be packed and offered again."""
        data = base64.b64decode(request.manifest)
        pack = None
        if request.pack is not None:
            if Path(request.pack).name != request.pack:
                raise SnapshotException(f"{request.pack!r} is not the name of a pack")
            pack = depot.incoming / request.pack
        else:
            wanted = {entry.digest for entry in Manifest.from_bytes(data).entries if entry.digest}
            missing = depot.missing(sorted(wanted))
            if missing:
                return json_response(SnapshotResponse(None, missing))
        return json_response(SnapshotResponse(depot.add(data, pack)))

    @router.get("/snapshots/{snapshot_id}")
    def is_there(snapshot_id: str) -> Response:
        return json_response({"snapshot_id": snapshot_id, "there": depot.has(snapshot_id)})

    @router.get("/snapshots/{snapshot_id}/zip")
    def as_zip(snapshot_id: str) -> Response:
        with tempfile.NamedTemporaryFile(dir=depot.incoming, suffix=".zip", delete=False) as made:
            path = Path(made.name)
        try:
            depot.zip(snapshot_id, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return FileResponse(path, filename=f"{snapshot_id}.zip", background=BackgroundTask(path.unlink))

    return router
