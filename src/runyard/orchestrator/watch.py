"""Looks after live runs once a second: news that nobody told, agents and processes that are gone, metrics to read."""

from __future__ import annotations

import fcntl
import logging
import threading
from contextlib import suppress
from dataclasses import replace

from runyard import clock
from runyard.compute.base import Handle, Observed
from runyard.compute.registry import LOCAL
from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason
from runyard.orchestrator import agent_control
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import written_folders
from runyard.spec.folder import RunFolder
from runyard.store.database import is_full
from runyard.tracking.event_files import EventFiles
from runyard.tracking.ingest import ingest

log = logging.getLogger(__name__)
_EVERY_S = 1.0
# Whoever asks for metrics has the journals read then. To read them unasked is for listings, and takes the processor
# from a training that uses all of it: once a second it cost a small network a tenth of its steps.
_JOURNALS_EVERY_S = 10.0
_LOCKED_WITHIN_S = 10.0
_NOT_ASKED = (0, Observed())  # a run that became live since the last look


class Watcher(threading.Thread):
    def __init__(self, conductor: Conductor) -> None:
        super().__init__(name="watch", daemon=True)
        self._conductor = conductor
        self._event_files = EventFiles(conductor.rooms.database)
        self._stopping = threading.Event()
        self._told: dict[str, str] = {}  # why a run waits, as those who follow it were told
        self._journals_at: dict[str, float] = {}  # when those of a run are due

    def run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            try:
                observed = self._observed()
            except Exception:  # were this thread to end, no run would be looked at any more
                log.exception("the targets could not be asked for their runs")
                continue
            for run_id in list(self._conductor.live):
                try:
                    self._look_at(run_id, *observed.get(run_id, _NOT_ASKED))
                except Exception as error:
                    if not is_full(error):  # whoever asks for something is told; here it is tried again in a second
                        log.exception("run %s: could not be looked at", run_id)

    def stop(self) -> None:
        self._stopping.set()

    def _observed(self) -> dict[str, tuple[int, Observed | None]]:
        """Who has an agent, in which attempt: asked once for all runs of a target. A run that is not in the answer was
        not asked for."""
        rooms = self._conductor.rooms
        handles: dict[str, list[Handle]] = {}
        attempts: dict[str, int] = {}
        for run_id in list(self._conductor.live):
            with suppress(RunNotFound):
                record = rooms.runs.load(run_id)
                if run_id not in self._conductor.live:  # its next attempt is about to begin, and has no agent yet
                    continue
                if record.life.managed and agent_control.expects_agent(rooms, record):
                    handles.setdefault(record.target or LOCAL, []).append(agent_control.handle_of(rooms, record))
                    attempts[run_id] = record.life.attempt
        found: dict[str, tuple[int, Observed | None]] = {}
        for name, asked in handles.items():
            try:
                there = rooms.targets.get(name).compute.status(asked)
                found.update((handle.run_id, (attempts[handle.run_id], there.get(handle))) for handle in asked)
            except Exception:  # a target that cannot be asked says nothing about its runs
                log.exception("target %s: could not be asked", name)
        return found

    def _look_at(self, run_id: str, attempt: int, observed: Observed | None) -> None:
        conductor, rooms = self._conductor, self._conductor.rooms
        record = rooms.runs.load(run_id)
        folder = rooms.folder(run_id)
        if record.life.state.is_terminal:
            conductor.live.discard(run_id)
            self._told.pop(run_id, None)
            self._journals_at.pop(run_id, None)
            self._event_files.forget(run_id)
            return
        if clock.monotonic() >= self._journals_at.get(run_id, 0.0):
            self._journals_at[run_id] = clock.monotonic() + _JOURNALS_EVERY_S
            ingest(rooms.database, run_id, folder.journal)
        self._event_files.read_on(run_id, lambda: written_folders(rooms, record))
        if not record.life.managed:
            if _is_free(folder, clock.now() - record.created_at):
                end = End(EndReason.PROCESS_LOST, "its process ended without run.complete() or run.fail()")
                conductor.post(run_id, on.MarkedFailed(end))
            return
        conductor.read_news(run_id)  # after the look: an agent that ended properly has written its last words by now
        record = rooms.runs.load(run_id)
        # of an earlier attempt there is no agent any more, and of the next one there may be none yet
        if observed is None and record.life.attempt == attempt and agent_control.expects_agent(rooms, record):
            handle, compute = agent_control.handle_of(rooms, record), rooms.target(record).compute
            message = "the agent that held the run's processes is gone; what was left of them was stopped"
            end = compute.why_gone(handle) or End(EndReason.AGENT_LOST, message)
            conductor.post(run_id, on.AgentLost(replace(end, processes_left=compute.sweep(handle)), attempt))
        elif observed is not None and observed.waiting is not None:
            conductor.post(run_id, on.Waiting())
            if self._told.get(run_id) != observed.waiting:
                self._told[run_id] = observed.waiting
                conductor.bell.ring(run_id)


def _is_free(folder: RunFolder, age_s: float) -> bool:
    """Whether the process that held an interactive run is gone: the kernel gives its lock back, however it ended."""
    try:
        with open(folder.client_lock, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # before its process has written its pid, the lock is just about to be taken; or it never will be
            return bool(lock.read(1)) or age_s > _LOCKED_WITHIN_S
    except FileNotFoundError:
        return False  # nobody said that they would hold it
    except BlockingIOError:
        return False
