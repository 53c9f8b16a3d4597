"""The logs of a run: their list, any part of one, and full-text search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_report import logs
from runyard.server.parameters import clamp
from runyard.server.responses import encode_json, json_response
from runyard.tracking.log_search import LogMatch, search_chunks
from runyard.tracking.logs import log_sizes, read_log
from runyard.wire.run_inspection import LogView

_MAX_BYTES = 1 << 24
_MAX_MATCHES = 10_000
_CHUNKS_PER_SPACE = 64
_HEADERS = {"Cache-Control": "no-store"}


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["logs"])
    components = conductor.components

    def log_path(run_id: str, name: str) -> Path:
        folder = components.folder(components.runs.load(run_id).run_id).logs
        names = log_sizes(folder)
        if name not in names:
            hint = f"its logs: {', '.join(sorted(names))}" if names else "it has none yet"
            raise UserErrorException(f"run {run_id} has no log {name!r}", hint=hint)
        return folder / name

    @router.get("/runs/{run_id}/logs", response_model=list[LogView])
    def all_logs(run_id: str) -> Response:
        components.runs.load(run_id)
        return json_response(logs(components, run_id))

    @router.get("/runs/{run_id}/logs/{name}")
    def part(run_id: str, name: str, begin: int = Query(0, alias="from"), limit: int = 1 << 20) -> Response:
        """Return bytes from an offset on; a negative one counts from the end.

        The header `X-From` has the offset of the first byte, `X-Size` the size of the log.
        """
        path = log_path(run_id, name)
        data, end = read_log(path, clamp(begin, -(2**62)), clamp(limit, 0, _MAX_BYTES))
        size = max(log_sizes(path.parent).get(name, 0), end)  # the script may have removed its log
        headers = {**_HEADERS, "X-From": str(end - len(data)), "X-Size": str(size)}
        return Response(data, headers=headers, media_type="text/plain; charset=utf-8")

    @router.get("/runs/{run_id}/logs/{name}/search", response_model=list[LogMatch])
    def search(run_id: str, name: str, text: str, limit: int = 1000) -> Response:
        """List the lines that contain a text, ignoring case: offset, number and content. Sent while it is searched."""
        chunks = search_chunks(log_path(run_id, name), text, clamp(limit, 1, _MAX_MATCHES))
        return StreamingResponse(_encode_list(chunks), media_type="application/json", headers=_HEADERS)

    return router


def _encode_list(chunks: Iterable[list[LogMatch]]) -> Iterator[bytes]:
    """Encode a JSON array piece by piece. A piece without matches is a space, which detects a closed connection."""
    separator, searched = b"[", 0
    for matches in chunks:
        if matches:
            yield separator + b",".join(encode_json(match._asdict()) for match in matches)
            separator = b","
        elif (searched := searched + 1) % _CHUNKS_PER_SPACE == 0:
            yield b" "
    yield b"[]" if separator == b"[" else b"]"
