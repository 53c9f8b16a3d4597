"""The files of a run: its logs, what it kept, and while it runs what it writes under the watched folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.finding import list_files, locate
from runyard.server.answers import answer
from runyard.tracking.artifacts import INCOMING
from runyard.wire.runs import FileView

_CHUNK = 1 << 20


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["files"])
    rooms = conductor.rooms

    @router.get("/runs/{run_id}/files", response_model=list[FileView])
    def files(run_id: str) -> Response:
        return answer([FileView(name, size) for name, size in list_files(rooms, rooms.runs.load(run_id))])

    @router.get("/runs/{run_id}/files/{name:any}")
    def file(run_id: str, name: str) -> Response:
        record = rooms.runs.load(run_id)
        path = locate(rooms, record, name)
        if path is None:
            near = [known for known, _ in list_files(rooms, record)][:8]
            hint = f"its files: {', '.join(near)}" if near else "it has no files yet"
            raise UserErrorException(f"run {run_id} has no file {name!r}", hint=hint)
        return _sent(path, Path(name).name)

    @router.put("/runs/{run_id}/files/{name:any}", response_model=FileView)
    async def keep(run_id: str, name: str, request: Request) -> Response:
        """The body is the file. It is kept whole or not at all."""
        await run_in_threadpool(rooms.runs.load, run_id)
        with tempfile.NamedTemporaryFile(prefix=INCOMING, dir=rooms.home / "artifacts") as arrived:
            try:
                async for chunk in request.stream():
                    await run_in_threadpool(arrived.write, chunk)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            await run_in_threadpool(arrived.flush)
            kept = await run_in_threadpool(rooms.artifacts.keep_file, run_id, name, Path(arrived.name))
        return answer(FileView(kept.path, kept.size))

    return router


def _sent(path: Path, name: str) -> Response:
    """As long as it is now: a log may grow while it is sent, and an answer that outgrows its length is a broken one."""
    file = open(path, "rb")  # noqa: SIM115  closed by whoever sends it
    size = file.seek(0, 2)
    file.seek(0)
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}",
    }
    return StreamingResponse(_pieces(file, size), headers=headers, media_type="application/octet-stream")


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size and (piece := file.read(min(size, _CHUNK))):
            size -= len(piece)
            yield piece
