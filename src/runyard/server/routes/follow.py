"""Server-sent events of one run for clients that wait for it: status changes and logs."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.errors import UserErrorException
from runyard.lifecycle.state import RunState
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import list_files
from runyard.server.responses import KEEP_ALIVE, encode_event, event_stream_response, json_response, run_view
from runyard.spec.json import replace_non_finite
from runyard.tracking.ingest import ingest
from runyard.tracking.logs import read_log
from runyard.tracking.metrics import read_last
from runyard.wire.runs import FileView, RunSummary, RunView

_LOG_POLL_S = 0.05  # logs are polled while they are followed; state changes are pushed
_KEEP_ALIVE_S = 15.0
_CHUNK_BYTES = 256 * 1024
# of a gang, only the first process is streamed; the logs of the others are among the run's files
_STREAMED = re.compile(r"hyperdrive\.txt|[23]0_.*|70_driver_log(_rank_0|_worker_0|_chief_0)?\.txt")


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["runs"])

    @router.get("/runs/{run_id}/follow")
    async def follow(
        run_id: str, logs: bool = True, after: str = "", exact: bool = False, summary: bool = False, files: bool = False
    ) -> Response:
        """Stream events: `status` (a run), `log` ({name, offset, text}), and finally `end` (a run).

        `after` skips the part of each log that the client has, as `name:offset,…`. With `exact`, each character of a
        text is one byte of the log, independent of its encoding. With `summary` and `files`, events of these names
        precede the end: a client that waits for a run requests them next.
        """
        await run_in_threadpool(
            conductor.components.runs.load, run_id
        )  # an unknown run is an error, not an empty stream
        folder = conductor.components.folder(run_id)
        tails = _LogTails(folder.logs, _offsets(after), exact)
        events = _events(conductor, run_id, logs, tails, summary, files)
        return event_stream_response(events)

    @router.get("/runs/{run_id}/summary", response_model=RunSummary)
    def summary(run_id: str) -> Response:
        conductor.components.runs.load(run_id)
        ingest(conductor.components.database, run_id, conductor.components.folder(run_id).journal)
        return json_response(_summary(conductor, run_id))

    return router


def _offsets(after: str) -> dict[str, int]:
    try:
        pairs = (part.rpartition(":") for part in after.split(",") if part)
        return {name: int(offset) for name, _, offset in pairs}
    except ValueError:
        raise UserErrorException(f"after: expected name:offset,…, got {after!r}") from None


async def _events(
    conductor: Conductor, run_id: str, logs: bool, tails: _LogTails, summary: bool, files: bool
) -> AsyncIterator[bytes]:
    sent_status: tuple[int, str] | None = None
    sent_at = 0.0
    notified = True
    async with conductor.notifier.subscribe(run_id) as subscription:
        while True:
            # the state is read before the logs: logs that are read after the end are complete
            if notified:
                run = await run_in_threadpool(_load_view, conductor, run_id)
            ended = RunState(run.status).is_terminal
            if logs:
                for event in tails.read():
                    sent_at = clock.monotonic()
                    yield event
            if ended:
                if summary:
                    yield encode_event("summary", await run_in_threadpool(_summary, conductor, run_id))
                if files:
                    yield encode_event("files", await run_in_threadpool(_files, conductor, run_id))
                yield encode_event("end", run)
                return
            if (run.version, run.activity) != sent_status:
                sent_status, sent_at = (run.version, run.activity), clock.monotonic()
                yield encode_event("status", run)
            elif clock.monotonic() - sent_at > _KEEP_ALIVE_S:
                sent_at = clock.monotonic()
                yield KEEP_ALIVE
            if conductor.notifier.closed:
                return
            notified = await subscription.next(_LOG_POLL_S if logs else _KEEP_ALIVE_S)


def _summary(conductor: Conductor, run_id: str) -> RunSummary:
    return RunSummary(replace_non_finite(read_last(conductor.components.database, run_id)), _files(conductor, run_id))


def _files(conductor: Conductor, run_id: str) -> list[FileView]:
    components = conductor.components
    return [FileView(*file) for file in list_files(components, components.runs.load(run_id))]


def _load_view(conductor: Conductor, run_id: str) -> RunView:
    return run_view(conductor, conductor.components.runs.load(run_id))


@dataclass
class _LogTails:
    """The logs of a run in the order of their names, each read from the client's offset."""

    folder: Path
    offsets: dict[str, int]
    exact: bool = False
    decoders: dict[str, codecs.IncrementalDecoder] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        return "latin-1" if self.exact else "utf-8"

    def read(self) -> Iterator[bytes]:
        """Yield one event at a time: a log of gigabytes must not be loaded into memory."""
        for path in sorted(self.folder.glob("*.txt")) if self.folder.is_dir() else []:
            if not _STREAMED.fullmatch(path.name):
                continue
            decoder = self.decoders.setdefault(path.name, codecs.getincrementaldecoder(self.encoding)("replace"))
            while True:
                offset = self.offsets.get(path.name, 0)
                data, end = read_log(path, offset, _CHUNK_BYTES)
                if not data:
                    break
                self.offsets[path.name] = end
                text = decoder.decode(data)
                yield encode_event("log", {"name": f"azureml-logs/{path.name}", "offset": end, "text": text})
