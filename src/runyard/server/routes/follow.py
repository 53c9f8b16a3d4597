"""A run as it happens: server-sent events of its status and its logs, pushed."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.errors import UserErrorException
from runyard.lifecycle.state import RunState
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import list_files
from runyard.server.responses import encode_json, json_response, run_view
from runyard.spec.json import replace_non_finite
from runyard.tracking.ingest import ingest
from runyard.tracking.logs import read_log
from runyard.tracking.metrics import read_last
from runyard.wire.runs import FileView, RunSummary, RunView

_LOOK_EVERY_S = 0.05  # how often a log that somebody reads is looked at; ends and states are pushed
_SAY_SOMETHING_EVERY_S = 15.0
_CHUNK = 256 * 1024
# of a gang, the first process speaks for all; the logs of the others are among the run's files
_STREAMED = re.compile(r"hyperdrive\.txt|[23]0_.*|70_driver_log(_rank_0|_worker_0|_chief_0)?\.txt")


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["runs"])

    @router.get("/runs/{run_id}/follow")
    async def follow(
        run_id: str, logs: bool = True, after: str = "", exact: bool = False, summary: bool = False, files: bool = False
    ) -> Response:
        """Events `status` (a run), `log` ({name, offset, text}), and at the end `end` (a run).

        `after` says what the caller has of each log already, as `name:offset,…`. With `exact`, each character of
        a text is one byte of the log, whatever its encoding. With `summary` there is a `summary` before the end, with
        `files` a list of its files: who waits for a run asks for them next.
        """
        await run_in_threadpool(conductor.rooms.runs.load, run_id)  # an unknown run is an error, not an empty stream
        folder = conductor.rooms.folder(run_id)
        tails = _Tails(folder.logs, _offsets(after), exact)
        events = _events(conductor, run_id, logs, tails, summary, files)
        return StreamingResponse(events, media_type="text/event-stream")

    @router.get("/runs/{run_id}/summary", response_model=RunSummary)
    def summary(run_id: str) -> Response:
        conductor.rooms.runs.load(run_id)
        ingest(conductor.rooms.database, run_id, conductor.rooms.folder(run_id).journal)
        return json_response(_summary(conductor, run_id))

    return router


def _offsets(after: str) -> dict[str, int]:
    try:
        return {name: int(at) for name, _, at in (part.rpartition(":") for part in after.split(",") if part)}
    except ValueError:
        raise UserErrorException(f"after={after!r} is not of the form name:offset,…") from None


async def _events(
    conductor: Conductor, run_id: str, logs: bool, tails: _Tails, summary: bool, files: bool
) -> AsyncIterator[bytes]:
    told: tuple[int, str] | None = None
    spoke_at = 0.0
    rung = True
    async with conductor.bell.listen(run_id) as listener:
        while True:
            # the state is read before the logs: what is read after an end is all there will ever be
            if rung:
                run = await run_in_threadpool(_current, conductor, run_id)
            ended = RunState(run.status).is_terminal
            if logs:
                for event in tails.read():
                    spoke_at = clock.monotonic()
                    yield event
            if ended:
                if summary:
                    yield _event("summary", encode_json(await run_in_threadpool(_summary, conductor, run_id)))
                if files:
                    yield _event("files", encode_json(await run_in_threadpool(_files, conductor, run_id)))
                yield _event("end", encode_json(run))
                return
            if (run.version, run.activity) != told:
                told, spoke_at = (run.version, run.activity), clock.monotonic()
                yield _event("status", encode_json(run))
            elif clock.monotonic() - spoke_at > _SAY_SOMETHING_EVERY_S:
                spoke_at = clock.monotonic()
                yield b": still here\n\n"
            if conductor.bell.closed:
                return
            rung = await listener.next(_LOOK_EVERY_S if logs else _SAY_SOMETHING_EVERY_S)


def _summary(conductor: Conductor, run_id: str) -> RunSummary:
    return RunSummary(replace_non_finite(read_last(conductor.rooms.database, run_id)), _files(conductor, run_id))


def _files(conductor: Conductor, run_id: str) -> list[FileView]:
    rooms = conductor.rooms
    return [FileView(*file) for file in list_files(rooms, rooms.runs.load(run_id))]


def _current(conductor: Conductor, run_id: str) -> RunView:
    return run_view(conductor, conductor.rooms.runs.load(run_id))


@dataclass
class _Tails:
    """The logs of a run, in the order of their names, each from where the reader is."""

    folder: Path
    offsets: dict[str, int]
    exact: bool = False
    decoders: dict[str, codecs.IncrementalDecoder] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        return "latin-1" if self.exact else "utf-8"

    def read(self) -> Iterator[bytes]:
        """One event at a time: a log of gigabytes must not stand in memory to be told."""
        for path in sorted(self.folder.glob("*.txt")) if self.folder.is_dir() else []:
            if not _STREAMED.fullmatch(path.name):
                continue
            decoder = self.decoders.setdefault(path.name, codecs.getincrementaldecoder(self.encoding)("replace"))
            while True:
                offset = self.offsets.get(path.name, 0)
                data, following = read_log(path, offset, _CHUNK)
                if not data:
                    break
                self.offsets[path.name] = following
                text = decoder.decode(data)
                yield _event(
                    "log", encode_json({"name": f"azureml-logs/{path.name}", "offset": following, "text": text})
                )


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
