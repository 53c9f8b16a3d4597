"""Looks after live runs once a second: news that nobody told, agents and processes that are gone, metrics to read."""

from __future__ import annotations

import fcntl
import logging
import threading

from runyard import clock
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason
from runyard.orchestrator import begin
from runyard.orchestrator.conductor import Conductor
from runyard.spec.folder import RunFolder
from runyard.store.database import is_full
from runyard.tracking.ingest import ingest

log = logging.getLogger(__name__)
_EVERY_S = 1.0
_LOCKED_WITHIN_S = 10.0


class Watcher(threading.Thread):
    def __init__(self, conductor: Conductor) -> None:
        super().__init__(name="watch", daemon=True)
        self._conductor = conductor
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            for run_id in list(self._conductor.live):
                try:
                    self._look_at(run_id)
                except Exception as error:
                    if not is_full(error):  # whoever asks for something is told; here it is tried again in a second
                        log.exception("run %s: could not be looked at", run_id)

    def stop(self) -> None:
        self._stopping.set()

    def _look_at(self, run_id: str) -> None:
        conductor, rooms = self._conductor, self._conductor.rooms
        record = rooms.runs.load(run_id)
        folder = rooms.folder(run_id)
        if record.life.state.is_terminal:
            conductor.live.discard(run_id)
            return
        ingest(rooms.database, run_id, folder.journal)
        if not record.life.managed:
            if _is_free(folder, clock.now() - record.created_at):
                end = End(EndReason.PROCESS_LOST, "its process ended without run.complete() or run.fail()")
                conductor.post(run_id, on.MarkedFailed(end))
            return
        handle = begin.handle_of(rooms, record)
        compute = rooms.target(record).compute
        gone = handle not in compute.status([handle])
        conductor.read_news(run_id)  # after the look: an agent that ended properly has written its last words by now
        record = rooms.runs.load(run_id)
        if gone and begin.expects_agent(record.life.state):
            left = compute.sweep(handle)
            message = "the agent that held the run's processes is gone; what was left of them was stopped"
            conductor.post(run_id, on.AgentLost(End(EndReason.AGENT_LOST, message, processes_left=left)))


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
