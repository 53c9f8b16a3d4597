"""Polls live runs once a second: missed events, agents and processes that disappeared, metrics to ingest."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import replace

from runyard import clock
from runyard.compute.base import AgentStatus, Handle
from runyard.compute.registry import LOCAL
from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason
from runyard.orchestrator import agent_control
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_files import output_folders
from runyard.posix import file_lock
from runyard.spec.folder import RunFolder
from runyard.store.database import is_disk_full
from runyard.store.runs import RunRecord
from runyard.tracking.event_files import EventFiles
from runyard.tracking.ingest import ingest

log = logging.getLogger(__name__)
_INTERVAL_S = 1.0
# Requests for metrics read the journals themselves. Reading them here keeps listings current, and takes CPU time from
# a training that uses all of it: once a second cost a small network a tenth of its steps.
_INGEST_INTERVAL_S = 10.0
_LOCK_TIMEOUT_S = 10.0
_NOT_POLLED = (0, AgentStatus())  # a run that became live after the poll


class Watcher(threading.Thread):
    def __init__(self, conductor: Conductor) -> None:
        super().__init__(name="watch", daemon=True)
        self._conductor = conductor
        self._event_files = EventFiles(conductor.components.database)
        self._stopping = threading.Event()
        self._waiting_reasons: dict[str, str] = {}  # by run id, as last published
        self._ingest_at: dict[str, float] = {}  # by run id
        self._watched_since: dict[str, float] = {}  # interactive runs, by id: monotonic, as the clock may be set

    def run(self) -> None:
        while not self._stopping.wait(_INTERVAL_S):
            try:
                agents = self._poll_targets()
            except Exception:  # the thread must survive: it is the only one that detects lost agents
                log.exception("the targets could not be polled")
                continue
            for run_id in list(self._conductor.live):
                try:
                    self._check(run_id, *agents.get(run_id, _NOT_POLLED))
                except Exception as error:
                    if not is_disk_full(error):  # requests report a full disk; here it is tried again in a second
                        log.exception("run %s could not be checked", run_id)

    def stop(self) -> None:
        self._stopping.set()

    def _poll_targets(self) -> dict[str, tuple[int, AgentStatus | None]]:
        """The attempt and agent of each run that should have one, with one request per target. A run that is absent
        from the result was not polled."""
        components = self._conductor.components
        handles: dict[str, list[Handle]] = {}
        attempts: dict[str, int] = {}
        for run_id in list(self._conductor.live):
            with suppress(RunNotFound):
                record = components.runs.load(run_id)
                if run_id not in self._conductor.live:  # its next attempt is about to start and has no agent yet
                    continue
                if record.life.managed and agent_control.expects_agent(components, record):
                    handles.setdefault(record.target or LOCAL, []).append(components.handle(record))
                    attempts[run_id] = record.life.attempt
        agents: dict[str, tuple[int, AgentStatus | None]] = {}
        for name, target_handles in handles.items():
            try:
                status = components.targets.get(name).compute.status(target_handles)
            except Exception:  # the state of its runs is unknown: no conclusion
                log.exception("target %s could not be polled", name)
                continue
            agents.update((h.run_id, (attempts[h.run_id], status.get(h))) for h in target_handles)
        return agents

    def _check(self, run_id: str, attempt: int, agent: AgentStatus | None) -> None:
        conductor, components = self._conductor, self._conductor.components
        record = components.runs.load(run_id)
        folder = components.folder(run_id)
        if record.life.state.is_terminal:
            conductor.live.discard(run_id)
            self._waiting_reasons.pop(run_id, None)
            self._ingest_at.pop(run_id, None)
            self._watched_since.pop(run_id, None)
            self._event_files.forget(run_id)
            return
        try:
            self._read_metrics(record, folder)
        except Exception as error:  # files that cannot be read must not hide that the run has ended
            if not is_disk_full(error):
                log.exception("run %s: its metrics could not be read", run_id)
        if not record.life.managed:
            since = self._watched_since.setdefault(run_id, clock.monotonic())
            if _process_is_gone(folder, clock.monotonic() - since):
                end = End(EndReason.PROCESS_LOST, "its process ended without run.complete() or run.fail()")
                conductor.post(run_id, on.MarkedFailed(end))
            return
        conductor.read_events(run_id)  # after the poll: an agent that exited normally has written its last event
        record = components.runs.load(run_id)
        # a later attempt may not have an agent yet
        if agent is None and record.life.attempt == attempt and agent_control.expects_agent(components, record):
            handle, compute = components.handle(record), components.target(record).compute
            message = agent_control.loss_message(components, record)
            end = compute.explain_loss(handle) or End(EndReason.AGENT_LOST, message)
            conductor.post(run_id, on.AgentLost(replace(end, processes_left=compute.stop_leftovers(handle)), attempt))
        elif agent is not None and agent.waiting_reason is not None:
            conductor.post(run_id, on.Waiting())
            if self._waiting_reasons.get(run_id) != agent.waiting_reason:
                self._waiting_reasons[run_id] = agent.waiting_reason
                conductor.notifier.notify(run_id)

    def _read_metrics(self, record: RunRecord, folder: RunFolder) -> None:
        run_id, components = record.run_id, self._conductor.components
        if clock.monotonic() >= self._ingest_at.get(run_id, 0.0):
            self._ingest_at[run_id] = clock.monotonic() + _INGEST_INTERVAL_S
            ingest(components.database, run_id, folder.journal)
        self._event_files.ingest_new(run_id, lambda: output_folders(components, record))


def _process_is_gone(folder: RunFolder, age_s: float) -> bool:
    """True if the process of an interactive run has ended without reporting it; the kernel has released its lock."""
    try:
        has_pid = folder.client_lock.lstat().st_size > 0
    except FileNotFoundError:
        return False  # the process did not announce that it would hold the lock
    # read before the lock is checked: a process that has not written its id yet is about to take the lock
    return (has_pid or age_s > _LOCK_TIMEOUT_S) and not file_lock.is_held(folder.client_lock)
