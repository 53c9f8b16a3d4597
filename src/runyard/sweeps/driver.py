"""Drives the sweeps of a yard: one thread, woken by what happens to their children."""

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
from runyard.store.database import is_full
from runyard.store.runs import SWEEP, RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.sweep import Sweep

log = logging.getLogger(__name__)
_LOOK_S = 1.0  # at what the children report, where a policy waits for it
_IDLE_S = 10.0


class SweepDriver(threading.Thread):
    def __init__(self, conductor: Conductor, store: SweepStore) -> None:
        super().__init__(name="sweeps", daemon=True)
        self._conductor, self._store = conductor, store
        self._going: dict[str, Sweep] = {}
        self._again: set[str] = set()  # to be taken up anew at the next look
        self._running: set[str] = set()  # children whose script runs: the others have nothing to report
        self._news: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()  # a sweep, and its child or ""
        conductor.on_change.append(self._hear)

    def take_up(self, sweep_id: str) -> None:
        """A sweep that is new, or that a former yard has left."""
        self._news.put((sweep_id, ""))

    def stop(self) -> None:
        self._news.put(None)

    def run(self) -> None:
        for sweep_id in self._store.going():
            self.take_up(sweep_id)
        look_at = clock.monotonic() + _LOOK_S  # not at once: what ended while no yard was there is told first
        while True:
            watched = [one for one in self._going.values() if one.watches_reports]
            patience = max(0.0, look_at - clock.monotonic()) if watched or self._again else _IDLE_S
            news = self._heard(patience)
            if news is None:
                return
            due = clock.monotonic() >= look_at
            if due:
                look_at = clock.monotonic() + _LOOK_S
            # those with a time limit or a policy are looked at even when nothing was heard
            for sweep_id in {*news, *self._going, *self._again} if due else set(news) - self._again:
                self._advance(sweep_id, news.get(sweep_id, ()), self._running if due else None)

    def _hear(self, record: RunRecord) -> None:
        """Called in the middle of a change of any run: only notes it."""
        if record.type == SWEEP:
            self._news.put((record.run_id, ""))
        elif record.parent_id is not None:
            if record.life.state is RunState.RUNNING:
                self._running.add(record.run_id)
            elif record.life.state.is_terminal:
                self._running.discard(record.run_id)
                if record.parent_id in self._going:
                    self._news.put((record.parent_id, record.run_id))

    def _heard(self, patience_s: float) -> dict[str, set[str]] | None:
        """All that was said until now, by sweep; None: the yard closes."""
        heard: dict[str, set[str]] = {}
        try:
            said = self._news.get(timeout=patience_s) if patience_s else self._news.get_nowait()
            while True:
                if said is None:
                    return None
                heard.setdefault(said[0], set()).add(said[1])
                said = self._news.get_nowait()
        except queue.Empty:
            return heard

    def _advance(self, sweep_id: str, ended: Iterable[str], look_at: Container[str] | None) -> None:
        sweep = self._going.get(sweep_id)
        self._again.discard(sweep_id)
        try:
            if sweep is None:
                if sweep_id not in self._store.going():
                    return
                # a yard was killed while it took the sweep in; it stays written down, for it may be sent again
                if not self._conductor.rooms.runs.has(sweep_id):
                    return
                sweep = self._going[sweep_id] = Sweep(self._conductor, self._store, sweep_id)
                sweep.recover()
                self._running.update(sweep.running())
            if sweep.advance({child for child in ended if child}, look_at):
                self._store.end(sweep_id)
                del self._going[sweep_id]
            elif sweep.may_propose:  # after the others have had their turn
                self._news.put((sweep_id, ""))
        except Exception as error:
            if is_full(error):  # somebody may make room
                self._conductor.activities.set(sweep_id, "waiting for room on the yard's disk, which is full")
                self._take_up_again(sweep_id)
                return
            said = error.message if isinstance(error, RunyardException) else "an internal error; see yard.log"
            log.exception("sweep %s", sweep_id)
            try:
                end = End(EndReason.LAUNCH_FAILED, said)
                self._conductor.post(sweep_id, on.MarkedFailed(end))
                if sweep is not None:
                    sweep.give_up()
                else:
                    self._end_without(sweep_id, end)
            except Exception:  # the thread would be gone, and with it every other sweep
                log.exception("sweep %s could not be given up", sweep_id)
                self._take_up_again(sweep_id)

    def _end_without(self, sweep_id: str, end: End) -> None:
        """A sweep that cannot even be read: whatever is posted about it is news of it, and would be tried for ever."""
        for trial in self._store.trials(sweep_id):
            if self._conductor.rooms.runs.has(trial.run_id):
                self._conductor.post(trial.run_id, on.CancelRequested(f"its sweep ended: {end.message}"))
        self._conductor.post(sweep_id, on.ChildrenEnded(end))
        self._store.end(sweep_id)

    def _take_up_again(self, sweep_id: str) -> None:
        """From what is stored: the step that broke off may have used up news of a child that nobody says twice."""
        self._going.pop(sweep_id, None)
        self._again.add(sweep_id)
