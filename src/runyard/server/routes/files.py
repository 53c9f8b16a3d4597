"""The files of a run: its logs, its artifacts, and while it runs the files in its watched folders."""

from __future__ import annotations

from pathlib import PurePath

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finalize import ingest_uploaded_event_files
from runyard.orchestrator.run_files import find_file, list_files
from runyard.server.file_responses import file_response, zip_response
from runyard.server.responses import json_response
from runyard.server.uploads import CLIENT_CLOSED_REQUEST, store_upload
from runyard.wire.event_records import is_event_file
from runyard.wire.runs import FileView


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["files"])
    components = conductor.components

    @router.get("/runs/{run_id}/files", response_model=list[FileView])
    def files(run_id: str) -> Response:
        return json_response(
            [FileView(name, size) for name, size in list_files(components, components.runs.load(run_id))]
        )

    @router.get("/runs/{run_id}/files.zip")
    def zipped(run_id: str) -> Response:
        """Return all files of the run as a zip archive, which is built while it is sent."""
        record = components.runs.load(run_id)
        sources = ((name, find_file(components, record, name)) for name, _ in list_files(components, record))
        return zip_response([(name, source) for name, source in sources if source is not None], f"{run_id}.zip")

    @router.get("/runs/{run_id}/files/{name:any}")
    def file(run_id: str, name: str, inline: bool = False) -> Response:
        """Return the content or ranges of it; `inline=1` sets a type that a browser displays but never executes."""
        record = components.runs.load(run_id)
        source = find_file(components, record, name)
        if source is None:
            names = [file_name for file_name, _ in list_files(components, record)][:8]
            hint = f"its files: {', '.join(names)}" if names else "it has no files yet"
            raise UserErrorException(f"run {run_id} has no file {name!r}", hint=hint)
        return file_response(source, PurePath(name).name, inline=inline)

    @router.put("/runs/{run_id}/files/{name:any}", response_model=FileView)
    async def upload(run_id: str, name: str, request: Request) -> Response:
        """Store the body as a file, completely or not at all."""
        await run_in_threadpool(components.runs.load, run_id)
        stored = await store_upload(request, components.home, components.artifacts, run_id, name)
        if stored is None:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        if is_event_file(stored.path):  # TensorBoard event files become charts, also after the run's end
            await run_in_threadpool(ingest_uploaded_event_files, components, run_id)
        return json_response(FileView(stored.path, stored.size))

    return router
