"""Server-sent events for the studio: changes of all runs for the table, and of one run for its page."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.errors import RunyardException
from runyard.lifecycle.state import RunState
from runyard.orchestrator.change_notifier import EVERY_RUN
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import list_files
from runyard.run_table.table import RunTable
from runyard.server.responses import KEEP_ALIVE, encode_event, encode_json, event_stream_response, run_view
from runyard.server.routes.computes import computes_view
from runyard.store.runs import RunRecord
from runyard.tracking.ingest import ingest
from runyard.tracking.logs import log_sizes
from runyard.tracking.series_index import series_counts

log = logging.getLogger(__name__)
_POLL_S = 1.0  # metrics change without a notification
_TABLE_PAUSE_S = 0.25
_RUN_PAUSE_S = 0.5
_KEEP_ALIVE_S = 15.0
_FILES_INTERVAL_S = 2.0
_METRICS_INTERVAL_S = 2.0
_COMPUTES_INTERVAL_S = 3.0


def routes(conductor: Conductor, table: RunTable) -> APIRouter:
    router = APIRouter(tags=["live"])
    metrics, computes = _MetricIngestion(conductor), _ComputePoller(conductor)

    @router.get("/live")
    async def live(
        after: int | None = None, last_event_id: Annotated[int | None, Header(alias="Last-Event-ID")] = None
    ) -> Response:
        """Stream events: `hello` ({version}), `run` (a row of the table), `removed` ({run_id}), `computes`, and `reset`
        if the client must reload the table.

        The id of an event is the version of the table; `after` or the header `Last-Event-ID` continues from there.
        """
        start = last_event_id if last_event_id is not None else after
        return event_stream_response(_table_events(conductor, table, metrics, computes, start))

    @router.get("/runs/{run_id}/live")
    async def live_run(run_id: str) -> Response:
        """Stream events: `status` (a run), `metrics` ({name: points}), `logs` ({name: bytes}), `files`, and `end`."""
        await run_in_threadpool(conductor.components.runs.load, run_id)
        return event_stream_response(_run_events(conductor, run_id))

    return router


class _MetricIngestion:
    """Reads the journals of live runs while the table is open, once for all of its readers."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._lock = threading.Lock()
        self._due = 0.0

    def read(self) -> None:
        with self._lock:
            if clock.monotonic() < self._due:
                return
            self._due = clock.monotonic() + _METRICS_INTERVAL_S
        components = self._conductor.components
        for run_id in list(self._conductor.live):
            ingest(components.database, run_id, components.folder(run_id).journal)


class _ComputePoller:
    """The status of the compute targets, updated in the background: a scheduler may be slow to respond."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._polling = threading.Lock()
        self._due = 0.0
        self.latest = b""

    def poll(self) -> None:
        if clock.monotonic() >= self._due:
            threading.Thread(target=self._update, name="computes", daemon=True).start()

    def _update(self) -> None:
        if not self._polling.acquire(blocking=False):
            return
        try:
            self.latest = encode_json(computes_view(self._conductor))
        except RunyardException as error:
            log.warning("cannot read the status of the compute targets: %s", error)
        finally:
            self._due = clock.monotonic() + _COMPUTES_INTERVAL_S
            self._polling.release()


async def _table_events(
    conductor: Conductor, table: RunTable, metrics: _MetricIngestion, computes: _ComputePoller, after: int | None
) -> AsyncIterator[bytes]:
    sent_at = clock.monotonic()
    sent_computes = b""
    async with conductor.notifier.subscribe(EVERY_RUN) as subscription:
        version = await run_in_threadpool(lambda: table.version)
        yield encode_event("hello", {"version": version}, version)
        version = version if after is None else after
        while not conductor.notifier.closed:
            if conductor.live:
                await run_in_threadpool(metrics.read)
            notified, subscription.changed_runs = subscription.changed_runs, set()
            version, changed = await run_in_threadpool(table.changed, version)
            if changed is None:
                yield encode_event("reset", {}, version)
            run_ids = dict.fromkeys([*changed, *notified]) if changed is not None else {}
            for run_id, row in await run_in_threadpool(table.rows, run_ids) if run_ids else ():
                sent_at = clock.monotonic()
                if row is None:
                    yield encode_event("removed", {"run_id": run_id}, version)
                else:
                    yield encode_event("run", row, version)
            computes.poll()
            if computes.latest != sent_computes:
                sent_computes, sent_at = computes.latest, clock.monotonic()
                yield encode_event("computes", sent_computes, version)
            if clock.monotonic() - sent_at > _KEEP_ALIVE_S:
                sent_at = clock.monotonic()
                yield KEEP_ALIVE
            await asyncio.sleep(_TABLE_PAUSE_S)  # a run that changes constantly is sent four times a second
            await subscription.next(_POLL_S)


async def _run_events(conductor: Conductor, run_id: str) -> AsyncIterator[bytes]:
    state = _SentState()
    sent_at = clock.monotonic()
    async with conductor.notifier.subscribe(run_id) as subscription:
        while not conductor.notifier.closed:
            events = await run_in_threadpool(state.update, conductor, run_id)
            for name, data in events:
                sent_at = clock.monotonic()
                yield encode_event(name, data)
                if name == "end":
                    return
            if clock.monotonic() - sent_at > _KEEP_ALIVE_S:
                sent_at = clock.monotonic()
                yield KEEP_ALIVE
            await asyncio.sleep(_RUN_PAUSE_S)
            await subscription.next(_POLL_S - _RUN_PAUSE_S)


@dataclass
class _SentState:
    """The state of a run that was sent to a client, so that only changes are sent."""

    status: tuple[int, str] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    files_at: float = 0.0

    def update(self, conductor: Conductor, run_id: str) -> list[tuple[str, Any]]:
        """Return the events to send. The state is read first: everything that is read after the end is final."""
        components = conductor.components
        record = components.runs.load(run_id)
        run = run_view(conductor, record)
        ended = RunState(run.status).is_terminal
        events: list[tuple[str, Any]] = []
        if (run.version, run.activity) != self.status:
            self.status = (run.version, run.activity)
            events.append(("status", run))
        ingest(components.database, run_id, components.folder(run_id).journal)
        events += _changes("metrics", self.counts, series_counts(components.database, run_id))
        events += _changes("logs", self.sizes, log_sizes(components.folder(run_id).logs))
        events += self._files(conductor, record, ended)
        return [*events, ("end", run)] if ended else events

    def _files(self, conductor: Conductor, record: RunRecord, ended: bool) -> list[tuple[str, Any]]:
        if not ended and clock.monotonic() < self.files_at:
            return []
        self.files_at = clock.monotonic() + _FILES_INTERVAL_S
        sizes = [size for _, size in list_files(conductor.components, record)]
        totals = {"count": len(sizes), "bytes": sum(sizes)}
        if totals == self.files:
            return []
        self.files = totals
        return [("files", totals)]


def _changes(name: str, sent: dict[str, int], current: dict[str, int]) -> list[tuple[str, Any]]:
    changed = {key: value for key, value in current.items() if sent.get(key) != value}
    sent.update(changed)
    return [(name, changed)] if changed else []
