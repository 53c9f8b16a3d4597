"""What happens, as it happens: all runs for a table, and one run for its page. Server-sent events."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.errors import RunyardException
from runyard.lifecycle.state import RunState
from runyard.orchestrator.change_notifier import EVERY_RUN
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import list_files
from runyard.run_table.table import RunTable
from runyard.server.responses import encode_json, run_view
from runyard.server.routes.computes import computes_view
from runyard.store.runs import RunRecord
from runyard.tracking.ingest import ingest
from runyard.tracking.logs import log_sizes
from runyard.tracking.series_index import series_counts

log = logging.getLogger(__name__)
_LOOK_EVERY_S = 1.0  # for what nobody rings for: metrics
_TABLE_PAUSE_S = 0.25
_RUN_PAUSE_S = 0.5
_SAY_SOMETHING_EVERY_S = 15.0
_FILES_EVERY_S = 2.0
_METRICS_EVERY_S = 2.0
_COMPUTES_EVERY_S = 3.0


def routes(conductor: Conductor, table: RunTable) -> APIRouter:
    router = APIRouter(tags=["live"])
    metrics, computes = _Metrics(conductor), _Computes(conductor)

    @router.get("/live")
    async def live(
        after: int | None = None, last_event_id: Annotated[int | None, Header(alias="Last-Event-ID")] = None
    ) -> Response:
        """Events `hello` ({version}), `run` (a row of the table), `removed` ({run_id}), `computes`, and `reset`: too
        much has changed.

        The id of an event is the version of the table; `after`, or the header `Last-Event-ID`, goes on from there.
        """
        start = last_event_id if last_event_id is not None else after
        return _stream(_everything(conductor, table, metrics, computes, start))

    @router.get("/runs/{run_id}/live")
    async def live_run(run_id: str) -> Response:
        """Events `status` (a run), `metrics` ({name: points}), `logs` ({name: bytes}), `files` ({count}), `end`."""
        await run_in_threadpool(conductor.rooms.runs.load, run_id)
        return _stream(_one_run(conductor, run_id))

    return router


class _Metrics:
    """Journals of live runs are read while somebody looks at the table, however many do: not for each of them."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._lock = threading.Lock()
        self._due = 0.0

    def read(self) -> None:
        with self._lock:
            if clock.monotonic() < self._due:
                return
            self._due = clock.monotonic() + _METRICS_EVERY_S
        rooms = self._conductor.rooms
        for run_id in list(self._conductor.live):
            ingest(rooms.database, run_id, rooms.folder(run_id).journal)


class _Computes:
    """How the targets stand, asked for in the background: one whose scheduler does not answer holds nobody up."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._asking = threading.Lock()
        self._due = 0.0
        self.latest = b""

    def ask(self) -> None:
        if clock.monotonic() >= self._due:
            threading.Thread(target=self._look, name="computes", daemon=True).start()

    def _look(self) -> None:
        if not self._asking.acquire(blocking=False):
            return
        try:
            self.latest = encode_json(computes_view(self._conductor))
        except RunyardException as error:
            log.warning("the compute targets cannot be told: %s", error)
        finally:
            self._due = clock.monotonic() + _COMPUTES_EVERY_S
            self._asking.release()


def _stream(events: AsyncIterator[bytes]) -> Response:
    # a proxy in between must neither keep events back nor keep them for others
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _everything(
    conductor: Conductor, table: RunTable, metrics: _Metrics, computes: _Computes, after: int | None
) -> AsyncIterator[bytes]:
    spoke_at = clock.monotonic()
    told = b""
    async with conductor.bell.listen(EVERY_RUN) as listener:
        version = await run_in_threadpool(lambda: table.version)
        yield event("hello", encode_json({"version": version}), version)
        version = version if after is None else after
        while not conductor.bell.closed:
            if conductor.live:
                await run_in_threadpool(metrics.read)
            heard, listener.heard = listener.heard, set()
            found, changed = await run_in_threadpool(table.changed, version)
            if changed is None:
                yield event("reset", b"{}", found)
            wanted = dict.fromkeys([*(changed or ()), *heard]) if changed is not None else {}
            for run_id, row in await run_in_threadpool(table.rows, wanted) if wanted else ():
                spoke_at = clock.monotonic()
                yield (
                    event("removed", encode_json({"run_id": run_id}), found)
                    if row is None
                    else event("run", row, found)
                )
            computes.ask()
            if computes.latest != told:
                told, spoke_at = computes.latest, clock.monotonic()
                yield event("computes", told, found)
            version = found
            if clock.monotonic() - spoke_at > _SAY_SOMETHING_EVERY_S:
                spoke_at = clock.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(_TABLE_PAUSE_S)  # a run that changes all the time is told four times a second
            await listener.next(_LOOK_EVERY_S)


async def _one_run(conductor: Conductor, run_id: str) -> AsyncIterator[bytes]:
    seen = _Seen()
    spoke_at = clock.monotonic()
    async with conductor.bell.listen(run_id) as listener:
        while not conductor.bell.closed:
            # the state is looked at before the rest: what is seen after an end is all there will ever be
            events = await run_in_threadpool(seen.look, conductor, run_id)
            for name, data in events:
                spoke_at = clock.monotonic()
                yield event(name, encode_json(data))
                if name == "end":
                    return
            if clock.monotonic() - spoke_at > _SAY_SOMETHING_EVERY_S:
                spoke_at = clock.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(_RUN_PAUSE_S)
            await listener.next(_LOOK_EVERY_S - _RUN_PAUSE_S)


@dataclass
class _Seen:
    """What a reader was told of a run, so that only what is new is told."""

    status: tuple[int, str] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    files_at: float = 0.0

    def look(self, conductor: Conductor, run_id: str) -> list[tuple[str, Any]]:
        rooms = conductor.rooms
        record = rooms.runs.load(run_id)
        run = run_view(conductor, record)
        ended = RunState(run.status).is_terminal
        events: list[tuple[str, Any]] = []
        if (run.version, run.activity) != self.status:
            self.status = (run.version, run.activity)
            events.append(("status", run))
        ingest(rooms.database, run_id, rooms.folder(run_id).journal)
        events += _news("metrics", self.counts, series_counts(rooms.database, run_id))
        events += _news("logs", self.sizes, log_sizes(rooms.folder(run_id).logs))
        events += self._files(conductor, record, ended)
        return [*events, ("end", run)] if ended else events

    def _files(self, conductor: Conductor, record: RunRecord, ended: bool) -> list[tuple[str, Any]]:
        if not ended and clock.monotonic() < self.files_at:
            return []
        self.files_at = clock.monotonic() + _FILES_EVERY_S
        sizes = [size for _, size in list_files(conductor.rooms, record)]
        found = {"count": len(sizes), "bytes": sum(sizes)}
        if found == self.files:
            return []
        self.files = found
        return [("files", found)]


def _news(name: str, known: dict[str, int], found: dict[str, int]) -> list[tuple[str, Any]]:
    fresh = {key: value for key, value in found.items() if known.get(key) != value}
    known.update(fresh)
    return [(name, fresh)] if fresh else []


def event(name: str, data: bytes, number: int | None = None) -> bytes:
    """Data is JSON on one line, so it cannot end the event, whatever is in it."""
    head = b"id: %d\n" % number if number is not None else b""
    return head + b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
