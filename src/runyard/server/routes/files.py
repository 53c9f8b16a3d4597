"""The files of a run: its logs, what it kept, and while it runs what it writes under the watched folders."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finalize import read_uploaded_event_files
from runyard.orchestrator.run_files import list_files, locate
from runyard.server.file_responses import file_response, zip_response
from runyard.server.responses import json_response
from runyard.spec.folder import HomeFolder
from runyard.tracking.artifacts import INCOMING
from runyard.wire.event_records import is_event_file
from runyard.wire.runs import FileView


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["files"])
    rooms = conductor.rooms

    @router.get("/runs/{run_id}/files", response_model=list[FileView])
    def files(run_id: str) -> Response:
        return json_response([FileView(name, size) for name, size in list_files(rooms, rooms.runs.load(run_id))])

    @router.get("/runs/{run_id}/files.zip")
    def zipped(run_id: str) -> Response:
        """All files of the run as one zip, made as it is sent."""
        record = rooms.runs.load(run_id)
        places = ((name, locate(rooms, record, name)) for name, _ in list_files(rooms, record))
        return zip_response(((name, path) for name, path in places if path is not None), f"{run_id}.zip")

    @router.get("/runs/{run_id}/files/{name:any}")
    def file(
        run_id: str, name: str, inline: bool = False, asked: Annotated[str | None, Header(alias="Range")] = None
    ) -> Response:
        """The content, or a range of it; `inline=1` with a type that a browser shows and never runs."""
        record = rooms.runs.load(run_id)
        path = locate(rooms, record, name)
        if path is None:
            near = [known for known, _ in list_files(rooms, record)][:8]
            hint = f"its files: {', '.join(near)}" if near else "it has no files yet"
            raise UserErrorException(f"run {run_id} has no file {name!r}", hint=hint)
        return file_response(path, Path(name).name, asked_range=asked, inline=inline)

    @router.put("/runs/{run_id}/files/{name:any}", response_model=FileView)
    async def keep(run_id: str, name: str, request: Request) -> Response:
        """The body is the file. It is kept whole or not at all."""
        await run_in_threadpool(rooms.runs.load, run_id)
        with tempfile.NamedTemporaryFile(prefix=INCOMING, dir=HomeFolder(rooms.home).artifacts) as arrived:
            try:
                async for chunk in request.stream():
                    await run_in_threadpool(arrived.write, chunk)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            await run_in_threadpool(arrived.flush)
            kept = await run_in_threadpool(rooms.artifacts.keep_file, run_id, name, Path(arrived.name))
        if is_event_file(kept.path):  # what was written for TensorBoard becomes charts, also after the run's end
            await run_in_threadpool(read_uploaded_event_files, rooms, run_id)
        return json_response(FileView(kept.path, kept.size))

    return router
