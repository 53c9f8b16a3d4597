"""The files of a run: its logs, what it kept, and while it runs what it writes under the watched folders."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finding import list_files, locate
from runyard.server.answers import answer
from runyard.wire.runs import FileView


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["files"])
    rooms = conductor.rooms

    @router.get("/runs/{run_id}/files", response_model=list[FileView])
    def files(run_id: str) -> Response:
        return answer([FileView(name, size) for name, size in list_files(rooms, rooms.runs.load(run_id))])

    @router.get("/runs/{run_id}/files/{name:path}")
    def file(run_id: str, name: str) -> Response:
        record = rooms.runs.load(run_id)
        path = locate(rooms, record, name)
        if path is None:
            near = [known for known, _ in list_files(rooms, record)][:8]
            hint = f"its files: {', '.join(near)}" if near else "it has no files yet"
            raise UserErrorException(f"run {run_id} has no file {name!r}", hint=hint)
        return FileResponse(path, filename=Path(name).name)

    @router.put("/runs/{run_id}/files/{name:path}", response_model=FileView)
    async def keep(run_id: str, name: str, request: Request) -> Response:
        """The body is the file. It is kept whole or not at all."""
        await run_in_threadpool(rooms.runs.load, run_id)
        with tempfile.TemporaryDirectory(dir=rooms.home) as place:
            arrived = Path(place) / "body"
            with open(arrived, "wb") as out:
                async for chunk in request.stream():
                    await run_in_threadpool(out.write, chunk)
            kept = await run_in_threadpool(rooms.artifacts.keep_file, run_id, name, arrived, move=True)
        return answer(FileView(kept.path, kept.size))

    return router
