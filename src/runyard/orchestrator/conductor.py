"""Applies events to runs: decides, saves the state, performs the actions. One thread decides at a time; slow actions
run in thread pools."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlalchemy.exc import OperationalError

from runyard import clock
from runyard.compute.base import ProgressCallback
from runyard.compute.registry import LOCAL, Target
from runyard.environments.manager import Prepared
from runyard.errors import RunNotFound, RunyardException
from runyard.lifecycle import actions as do
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.lifecycle.step import step
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.orchestrator import agent_control, agent_events, client_runs, data, dataset_versions, finalize
from runyard.orchestrator.activity import Activities
from runyard.orchestrator.change_notifier import ChangeNotifier
from runyard.orchestrator.components import Components
from runyard.orchestrator.prepare import RunEnvironments, data_failure
from runyard.orchestrator.run_description import describe_ended_run, describe_new_run
from runyard.orchestrator.run_report import DATA
from runyard.store.database import is_disk_full
from runyard.store.run_labels import Labels
from runyard.store.runs import RunRecord, with_life

log = logging.getLogger(__name__)
AgentEvent = tuple[on.Event, tuple[RunWarning, ...]]
_FULL_DISK_RETRY_S = 1.0


class Conductor:
    def __init__(self, components: Components) -> None:
        self.components = components
        self.notifier = ChangeNotifier()
        self.activities = Activities()
        self.environments = RunEnvironments(components)
        self.live: set[str] = set()  # managed runs with an agent, and interactive runs that hold their folder
        self.on_change: list[Callable[[RunRecord], None]] = []  # called after each change, in the changing thread
        self._deciding = threading.RLock()
        self._cancellations: dict[str, threading.Event] = {}  # of preparations and starts, by run id
        # Preparation may wait minutes for a build, so it must not block starts and ends.
        self._preparing = ThreadPoolExecutor(16, "prepare")
        self._acting = ThreadPoolExecutor(8, "act")
        # Starts and ends that transfer data may take hours.
        self._transferring = ThreadPoolExecutor(8, "transfer")
        self._reading = ThreadPoolExecutor(4, "read-events")
        self._closing = threading.Event()
        self._actions: dict[type[do.Action], Callable[[RunRecord], None]] = {
            do.Prepare: self._submit_preparation,
            do.AbandonPreparation: self._cancel_preparation,
            do.Requeue: lambda record: self.place_waiting(self.components.target(record)),
            do.StartAgent: lambda record: self._submit(self._pool(record), record.run_id, partial(self._start, record)),
            do.Watch: self._watch,
            do.StopAgent: self._stop_agent,
            do.Finalize: self._submit_finalization,
            do.LeaveQueue: lambda record: None,  # done before the change is published
        }

    def admit(
        self, record: RunRecord, first: on.Event, tags: Labels, properties: Labels, ready: Prepared | None = None
    ) -> RunRecord:
        """Store a new run with its first event. A run with this id that exists already is returned unchanged.

        ``ready`` is its environment, if that exists: then the run is enqueued immediately.
        """
        runs = self.components.runs
        with self._deciding:
            decided, actions = self._decide(record, first)
            if ready is not None:
                number = runs.next_number(record.run_id)  # its turn in the queue
                if number is None:
                    return runs.load(record.run_id)
                detailed = replace(_with_details(decided, notes(ready.warnings), ready.key), number=number)
                decided, actions = self._decide(detailed, on.Prepared())
            try:
                admitted = runs.insert(decided, tags, properties)
            except BaseException:
                if ready is not None:  # free its place in the queue
                    self.components.target(record).queue.leave(record.run_id)
                    self.place_waiting(self.components.target(record))
                raise
            if admitted is None:
                if ready is not None:
                    self.components.target(record).queue.leave(record.run_id)
                return runs.load(record.run_id)
        describe_new_run(self.components, admitted, tags, properties)
        self._perform(admitted, actions)
        return admitted

    def post(
        self,
        run_id: str,
        event: on.Event,
        *,
        environment_key: str | None = None,
        warnings: tuple[RunWarning, ...] = (),
        phase: str | None = None,
    ) -> RunRecord:
        """Apply an event to a run, with details that became known. Every change of a run goes through this method."""
        with self._deciding:
            before = self.components.runs.load(run_id)
            phase_start = {} if phase is None else {phase: clock.now()}
            detailed = _with_details(before, warnings, environment_key)
            detailed = replace(detailed, timeline={**phase_start, **before.timeline})
            record, actions = self._decide(detailed, event)
            if record != before:
                record = self.components.runs.save(record)
        self._perform(record, actions)
        return record

    def set_snapshot(self, run_id: str, snapshot_id: str) -> RunRecord:
        """Holds the decision lock so that a concurrent state change is not overwritten."""
        with self._deciding:
            return self.components.runs.save(replace(self.components.runs.load(run_id), snapshot_id=snapshot_id))

    def cancel(self, run_id: str) -> RunRecord:
        """A run that waited in its target's own queue may have started since: read its events first."""
        if self.components.runs.load(run_id).life.state is RunState.QUEUED:
            self.read_events(run_id)
        return self.post(run_id, on.CancelRequested())

    def activity(self, record: RunRecord) -> tuple[str, float | None]:
        """Describe what the run is doing or waiting for, and since when."""
        if record.life.state is RunState.QUEUED:
            reason = self.components.target(record).queue.waiting_reason(record.run_id)
            return reason, record.timeline.get(RunState.QUEUED.value)
        return self.activities.get(record.run_id)

    def activity_of(self, run_id: str, status: str, target: str | None) -> tuple[str, float | None]:
        """Like ``activity``, for callers without a record; the time of a queued run is in its timeline."""
        if status == RunState.QUEUED.value:
            return self.components.targets.get(target or LOCAL).queue.waiting_reason(run_id), None
        return self.activities.get(run_id)

    def activity_text(self, run_id: str, status: str, target: str | None) -> str:
        return self.activity_of(run_id, status, target)[0]

    def report(self, run_id: str, text: str) -> None:
        """Publish what a run is doing or waiting for; "" = nothing."""
        if text:
            self.activities.set(run_id, text)
        else:
            self.activities.forget(run_id)
        self.notifier.notify(run_id)

    @property
    def busy(self) -> bool:
        """True while a managed run has not ended."""
        return bool(self.components.runs.unfinished())

    def recover(self) -> None:
        """After the start of the yard: resume every run that has not ended."""
        unfinished = self.components.runs.unfinished()
        for record in unfinished:
            if not record.life.managed:
                self.live.add(record.run_id)
            try:
                folder = self.components.folder(record.run_id)
                if record.life.state is RunState.STARTING and not agent_control.is_submitted(folder, record):
                    # it was not started, and its place in the queue is lost: enqueue it again
                    self.post(record.run_id, on.Waiting())
                self.post(record.run_id, on.YardRestarted())
            except RunyardException as error:  # one run that cannot be resumed must not keep the yard from starting
                log.warning("run %s cannot be resumed: %s", record.run_id, error)
                self.post(record.run_id, on.MarkedFailed(End(EndReason.LAUNCH_FAILED, error.message)))
            except Exception:  # likewise
                log.exception("run %s could not be resumed", record.run_id)
        for creator in client_runs.ended_creators(self.components, unfinished):
            self._end_client_runs(creator)

    def place_waiting(self, target: Target) -> None:
        """Start the waiting runs that fit now."""
        for placement in target.queue.place():
            start = partial(self.post, placement.run_id, on.Placed())
            try:
                start()
            except RunNotFound:  # it was enqueued and could not be stored, because the disk was full
                target.queue.leave(placement.run_id)
            except OperationalError as error:
                if not is_disk_full(error):
                    raise
                self._submit(self._acting, placement.run_id, start)  # it holds its resources: try again

    def run_changed(self, run_id: str) -> None:
        """Read the agent's new events now instead of at the next poll."""
        with suppress(RuntimeError):  # the yard is closing
            self._reading.submit(self._read_events_quietly, run_id)

    def read_events(self, run_id: str) -> None:
        """Apply the agent's events. Repeated events change nothing."""
        recorded = agent_events.read_events(self.components.folder(run_id))
        events = [(event or on.DetailsChanged(), warnings) for event, warnings in recorded]
        while events:
            events = self._apply(run_id, events)

    def close(self) -> None:
        self._closing.set()
        for canceled in list(self._cancellations.values()):
            canceled.set()
        for pool in (self._preparing, self._acting, self._transferring, self._reading):
            pool.shutdown(wait=False, cancel_futures=True)

    def _decide(self, record: RunRecord, event: on.Event) -> tuple[RunRecord, list[do.Action]]:
        """Pure except for the queue: a run that fits immediately is decided up to its start, and saved once."""
        life, actions = step(record.life, event)
        record = with_life(record, life)
        if do.Enqueue() not in actions and do.Requeue() not in actions:
            return record, actions
        queue = self.components.target(record).queue
        if do.Requeue() in actions:
            self.live.discard(record.run_id)  # it has no agent to watch until it has started again
            queue.leave(record.run_id)
        try:
            agent_control.enqueue(self.components, record)
        except RunyardException as error:  # the target is too small for it now
            return self._decide(record, on.LaunchFailed(End(EndReason.LAUNCH_FAILED, error.message)))
        # already placed: decided before, and could not be saved because the disk was full
        if queue.placement(record.run_id) or queue.place_if_first(record.run_id):
            return self._decide(record, on.Placed())
        return record, [action for action in actions if action == do.Requeue()]

    def _perform(self, record: RunRecord, actions: list[do.Action]) -> None:
        run_id, has_ended = record.run_id, record.life.state.is_terminal
        if has_ended:
            self.live.discard(run_id)
            self.environments.forget(run_id)
        if has_ended or record.life.state in (RunState.RUNNING, RunState.CANCEL_REQUESTED):
            self.activities.forget(run_id)
        target = self.components.target(record) if do.LeaveQueue() in actions else None
        if target is not None:  # before the end is published: a client that waits for it may delete the target
            target.queue.leave(run_id)
        self.notifier.notify(run_id, urgent=has_ended)
        # a run that never started is not finalized, and may have a working copy
        never_started = record.life.end is not None and record.life.end.reason is EndReason.LAUNCH_FAILED
        if has_ended and (never_started or do.StopAgent() in actions):
            self._submit(self._acting, run_id, lambda: finalize.clean_up(self.components, record))
        if has_ended:
            self._submit(self._acting, run_id, partial(describe_ended_run, self.components, record))
        if has_ended and record.life.managed and not record.life.is_sweep:
            self._submit(self._acting, run_id, partial(self._end_client_runs, record))
        for action in actions:
            self._actions[type(action)](record)
        if target is not None:
            self.place_waiting(target)
        for callback in self.on_change:
            callback(record)

    def _submit_preparation(self, record: RunRecord) -> None:
        canceled = self._cancellations[record.run_id] = threading.Event()
        self._submit(self._preparing, record.run_id, lambda: self._prepare(record, canceled))

    def _cancel_preparation(self, record: RunRecord) -> None:
        self._cancellations.setdefault(record.run_id, threading.Event()).set()

    def _watch(self, record: RunRecord) -> None:
        if record.life.managed:  # the process of an interactive run holds no resources of a target
            agent_control.adopt(self.components, record)
        self.live.add(record.run_id)

    def _stop_agent(self, record: RunRecord) -> None:
        if record.run_id in self._cancellations:  # its data is being transferred
            self._cancellations[record.run_id].set()
        self._submit(self._acting, record.run_id, lambda: agent_control.stop(self.components, record))

    def _submit_finalization(self, record: RunRecord) -> None:
        if record.life.managed:
            self._submit(self._pool(record), record.run_id, lambda: self._finalize(record))
            return
        try:  # in this thread: a client that calls complete() requests the status next
            self._finalize(record)
        except OperationalError:  # such as a full disk: try again
            self._submit(self._acting, record.run_id, lambda: self._finalize(record))

    def _pool(self, record: RunRecord) -> ThreadPoolExecutor:
        return self._transferring if data.data_uses(record) else self._acting

    def _submit(self, pool: ThreadPoolExecutor, run_id: str, work: Callable[[], object]) -> None:
        def guarded() -> None:
            while not self._closing.is_set():
                try:
                    work()
                    return
                except Exception as error:
                    if not is_disk_full(error) and not self._closing.is_set():
                        log.exception("run %s: an action failed", run_id)
                        self._fail(run_id)
                        return
                # every action may be repeated, as after a restart
                self.activities.set(run_id, "waiting for free space on the yard's disk")
                self._closing.wait(_FULL_DISK_RETRY_S)

        try:
            pool.submit(guarded)
        except RuntimeError:  # the yard is closing: the next one resumes the run
            log.info("run %s: left for the next yard", run_id)

    def _fail(self, run_id: str) -> None:
        message = "an internal error of the yard; see yard.log in its home folder"
        record = self.post(run_id, on.MarkedFailed(End(EndReason.LAUNCH_FAILED, message)))
        if record.life.state is RunState.CANCEL_REQUESTED:  # the watcher finds out if it has an agent
            self.live.add(run_id)
        if record.life.state is RunState.FINALIZING:  # its end is known: it must not stay in this state
            self.post(run_id, on.Finalized(), warnings=(incomplete(f"outputs/ is incomplete: {message}"),))

    def _prepare(self, record: RunRecord, canceled: threading.Event) -> None:
        run_id, report = record.run_id, self._reporter(record)
        if agent_control.is_submitted(self.components.folder(run_id), record):
            # an earlier yard submitted it with everything to its target's own queue
            self._cancellations.pop(run_id, None)
            self.post(run_id, on.Prepared())
            return
        failure: Callable[[RunyardException], End] = partial(self.environments.failure, record)
        try:
            prepared = self.environments.prepare(record, report, canceled)
            failure = data_failure
            if data.data_uses(record):
                self.post(run_id, on.DetailsChanged(), phase=DATA)
                data.prefetch(self.components, record, report, canceled)
        except RunyardException as error:
            if not canceled.is_set():
                self.post(run_id, on.PreparationFailed(failure(error)))
            return
        finally:
            self._cancellations.pop(run_id, None)
        self.post(run_id, on.Prepared(), environment_key=prepared.key, warnings=notes(prepared.warnings))

    def _start(self, record: RunRecord) -> None:
        run_id = record.run_id
        self.activities.set(run_id, "starting the script")
        canceled = self._cancellations.setdefault(run_id, threading.Event())
        try:
            changed = dataset_versions.changed_datasets(self.components.datasets, record)
            if changed:
                self.post(run_id, on.DetailsChanged(), warnings=notes(changed))
            agent_control.start(self.components, record, self.environments, self._reporter(record), canceled)
        except (RunyardException, OSError) as error:
            end = End(EndReason.LAUNCH_FAILED, self.components.vault.redact(str(error)), node=LOCAL)
            self.post(run_id, on.LaunchFailed(end, record.life.attempt))
            return
        finally:
            self._cancellations.pop(run_id, None)
        self.live.add(run_id)
        self.read_events(run_id)

    def _read_events_quietly(self, run_id: str) -> None:
        try:
            self.read_events(run_id)
        except Exception as error:  # the watcher tries again in a second
            if not is_disk_full(error):
                log.exception("run %s: its events could not be read", run_id)

    def _apply(self, run_id: str, events: list[AgentEvent]) -> list[AgentEvent]:
        """Apply events up to the first one that requires an action, save once, and return the remaining ones. The start
        and end of a short script are read together: saving each would cost every run one more commit."""
        with self._deciding:
            record = before = self.components.runs.load(run_id)
            actions: list[do.Action] = []
            while events and not actions:
                (event, warnings), events = events[0], events[1:]
                record, actions = self._decide(_with_details(record, warnings), event)
            if record != before:
                record = self.components.runs.save(record)
            elif not actions:
                return events
        self._perform(record, actions)
        return events

    def _finalize(self, record: RunRecord) -> None:
        self.activities.set(record.run_id, "storing outputs")
        warnings = finalize.finalize(self.components, record, self._reporter(record))
        finalize.clean_up(self.components, self.post(record.run_id, on.Finalized(), warnings=warnings))

    def _end_client_runs(self, creator: RunRecord) -> None:
        for run_id, event in client_runs.ends_of_client_runs(self.components, creator):
            self.post(run_id, event)

    def _reporter(self, record: RunRecord) -> ProgressCallback:
        return lambda text: self.report(record.run_id, text)


def _with_details(record: RunRecord, warnings: tuple[RunWarning, ...], environment_key: str | None = None) -> RunRecord:
    merged = record.warnings + tuple(warning for warning in warnings if warning not in record.warnings)
    return replace(record, warnings=merged, environment_key=environment_key or record.environment_key)
