"""The thread that advances all sweeps of a yard, woken by state changes of their children."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Container, Iterable

from runyard import clock
from runyard.errors import RunyardException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.store.database import is_disk_full
from runyard.store.runs import SWEEP, RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.study import RecordedStudy
from runyard.sweeps.sweep import Sweep

log = logging.getLogger(__name__)
_POLL_S = 1.0  # interval for reading reports of running children
_IDLE_S = 10.0


class SweepDriver(threading.Thread):
    def __init__(self, conductor: Conductor, store: SweepStore) -> None:
        super().__init__(name="sweeps", daemon=True)
        self._conductor, self._store = conductor, store
        self._active: dict[str, Sweep] = {}
        self._studies: dict[str, RecordedStudy] = {}
        self._hosts: set[str] = set()  # runs whose scripts run a study
        self._retry: set[str] = set()  # to be reloaded at the next poll
        self._running: set[str] = set()  # children whose scripts are running; only these have reports
        self._events: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()  # (sweep, ended child or "")
        conductor.on_change.append(self._on_change)

    def add(self, sweep_id: str) -> None:
        """Start driving a sweep that is new or was active before a restart."""
        self._events.put((sweep_id, ""))

    def stop(self) -> None:
        self._events.put(None)

    def run(self) -> None:
        for sweep_id in self._store.active():
            self.add(sweep_id)
        next_poll = clock.monotonic() + _POLL_S  # delayed: ends that happened during the downtime are processed first
        while True:
            watched = [sweep for sweep in self._active.values() if sweep.watches_reports]
            timeout_s = max(0.0, next_poll - clock.monotonic()) if watched or self._retry else _IDLE_S
            events = self._receive(timeout_s)
            if events is None:
                return
            due = clock.monotonic() >= next_poll
            if due:
                next_poll = clock.monotonic() + _POLL_S
            # sweeps with a time limit or a policy are advanced even without an event
            for sweep_id in {*events, *self._active, *self._retry} if due else set(events) - self._retry:
                self._advance(sweep_id, events.get(sweep_id, ()), self._running if due else None)

    def _on_change(self, record: RunRecord) -> None:
        """Called during every state change of any run: only records it."""
        if record.life.state.is_terminal and record.run_id in self._hosts:
            for study in tuple(self._studies.values()):
                if study.study.host == record.run_id:
                    self._events.put((study.sweep_id, ""))
        if record.type == SWEEP:
            self._events.put((record.run_id, ""))
        elif record.parent_id is not None:
            if record.life.state is RunState.RUNNING:
                self._running.add(record.run_id)
            elif record.life.state.is_terminal:
                self._running.discard(record.run_id)
                if record.parent_id in self._active:
                    self._events.put((record.parent_id, record.run_id))

    def _receive(self, timeout_s: float) -> dict[str, set[str]] | None:
        """All queued events by sweep; None when the yard shuts down."""
        events: dict[str, set[str]] = {}
        try:
            event = self._events.get(timeout=timeout_s) if timeout_s else self._events.get_nowait()
            while True:
                if event is None:
                    return None
                events.setdefault(event[0], set()).add(event[1])
                event = self._events.get_nowait()
        except queue.Empty:
            return events

    def _advance(self, sweep_id: str, ended: Iterable[str], running: Container[str] | None) -> None:
        sweep = self._active.get(sweep_id)
        self._retry.discard(sweep_id)
        try:
            if sweep is None:
                if sweep_id not in self._store.active() or self._advance_study(sweep_id):
                    return
                # the yard was killed during the submission; the record stays, because the client may submit again
                if not self._conductor.components.runs.has(sweep_id):
                    return
                sweep = self._active[sweep_id] = Sweep(self._conductor, self._store, sweep_id)
                sweep.recover()
                self._running.update(sweep.running())
            if sweep.advance({child for child in ended if child}, running):
                self._store.end(sweep_id)
                del self._active[sweep_id]
            elif sweep.may_propose:  # after the other sweeps
                self._events.put((sweep_id, ""))
        except Exception as error:
            if is_disk_full(error):  # space may be freed
                self._conductor.activities.set(sweep_id, "waiting for free space on the yard's disk")
                self._retry_later(sweep_id)
                return
            message = error.message if isinstance(error, RunyardException) else "an internal error; see yard.log"
            log.exception("sweep %s", sweep_id)
            try:
                end = End(EndReason.LAUNCH_FAILED, message)
                self._conductor.post(sweep_id, on.MarkedFailed(end))
                if sweep is not None:
                    sweep.abort()
                else:
                    self._end_unreadable(sweep_id, end)
            except Exception:  # otherwise the thread would end, and with it every other sweep
                log.exception("sweep %s could not be aborted", sweep_id)
                self._retry_later(sweep_id)

    def _advance_study(self, sweep_id: str) -> bool:
        """Advance the sweep if it is an Optuna study; an error must not fail the run, which trains on its own."""
        study = self._studies.get(sweep_id)
        if study is None:
            spec = self._store.load(sweep_id)
            if spec is None or spec.study is None:
                return False
            study = self._studies[sweep_id] = RecordedStudy(self._conductor, self._store, sweep_id, spec.study)
            self._hosts.add(spec.study.host)  # before its state is read: an end after that is an event
        try:
            if study.advance():
                self._store.end(sweep_id)
                del self._studies[sweep_id]
        except Exception:
            log.exception("study of run %s", sweep_id)
            self._retry.add(sweep_id)
        return True

    def _end_unreadable(self, sweep_id: str, end: End) -> None:
        """End a sweep that cannot be loaded; otherwise every event about it would trigger another attempt."""
        for trial in self._store.trials(sweep_id):
            if self._conductor.components.runs.has(trial.run_id):
                self._conductor.post(trial.run_id, on.CancelRequested(f"its sweep ended: {end.message}"))
        self._conductor.post(sweep_id, on.ChildrenEnded(end))
        self._store.end(sweep_id)

    def _retry_later(self, sweep_id: str) -> None:
        """Reload from the store: the failed step may have consumed an event that is not repeated."""
        self._active.pop(sweep_id, None)
        self._retry.add(sweep_id)
