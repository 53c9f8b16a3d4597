"""Events in, states saved, actions done. One thread decides at a time; what takes long is done elsewhere."""

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
from runyard.compute.registry import Target
from runyard.environments.manager import Prepared
from runyard.errors import RunNotFound, RunyardException
from runyard.lifecycle import actions as do
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.lifecycle.step import step
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.orchestrator import agent_control, data, dataset_versions, finalize, prepare
from runyard.orchestrator.activity import Activities
from runyard.orchestrator.change_notifier import Bell
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.run_report import DATA
from runyard.store.database import is_full
from runyard.store.runs import Labels, RunRecord, entered

log = logging.getLogger(__name__)
Told = tuple[on.Event, tuple[RunWarning, ...]]  # by an agent: what happened, with warnings
_FULL_DISK_S = 1.0


class Conductor:
    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms
        self.bell = Bell()
        self.activities = Activities()
        self.live: set[str] = set()  # managed runs with an agent, and interactive runs that hold their folder
        self.on_change: list[Callable[[RunRecord], None]] = []  # called after each change, by whoever made it
        self._deciding = threading.RLock()
        self._abandoned: dict[str, threading.Event] = {}
        # Preparing may wait for minutes on a build, so it never takes the place of a start or an end.
        self._preparing = ThreadPoolExecutor(16, "prepare")
        self._acting = ThreadPoolExecutor(8, "act")
        # Starts and ends that bring data, or send it: they may take hours.
        self._carrying = ThreadPoolExecutor(8, "carry")
        self._reading = ThreadPoolExecutor(4, "news")
        self._closing = threading.Event()

    def admit(
        self, record: RunRecord, first: on.Event, tags: Labels, properties: Labels, ready: Prepared | None = None
    ) -> RunRecord:
        """A new run with its first event, and its environment where that is ``ready``. One of that id that is here
        already stays as it is."""
        with self._deciding:
            decided, actions = self._decide(record, first)
            if ready is not None:
                number = self.rooms.runs.next_number(record.run_id)  # it waits in line by it
                if number is None:
                    return self.rooms.runs.load(record.run_id)
                noted = replace(_noted(decided, notes(ready.warnings), ready.key), number=number)
                decided, actions = self._decide(noted, on.Prepared())
            try:
                admitted = self.rooms.runs.insert(decided, tags, properties)
            except BaseException:
                if ready is not None:  # nobody else would give its place back
                    self.rooms.target(record).queue.leave(record.run_id)
                    self.place_waiting(self.rooms.target(record))
                raise
            if admitted is None:
                if ready is not None:
                    self.rooms.target(record).queue.leave(record.run_id)
                return self.rooms.runs.load(record.run_id)
        self._carry_out(admitted, actions)
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
        """The one way in which a run changes; with facts about it that came to light on the way."""
        with self._deciding:
            before = self.rooms.runs.load(run_id)
            begun = {} if phase is None else {phase: clock.now()}
            noted = _noted(before, warnings, environment_key)
            noted = replace(noted, timeline={**begun, **before.timeline})
            record, actions = self._decide(noted, event)
            if record != before:
                record = self.rooms.runs.save(record)
        self._carry_out(record, actions)
        return record

    def note_snapshot(self, run_id: str, snapshot_id: str) -> RunRecord:
        """Not beside a change of the run: the one that is saved last would undo the other."""
        with self._deciding:
            return self.rooms.runs.save(replace(self.rooms.runs.load(run_id), snapshot_id=snapshot_id))

    def cancel(self, run_id: str) -> RunRecord:
        """A run that waited in its target's own line may have begun since: then it is stopped, not just forgotten."""
        if self.rooms.runs.load(run_id).life.state is RunState.QUEUED:
            self.read_news(run_id)
        return self.post(run_id, on.CancelRequested())

    def _decide(self, record: RunRecord, event: on.Event) -> tuple[RunRecord, list[do.Action]]:
        """Pure but for the queue: a run whose turn has come at once is decided on to its start, and saved once."""
        life, actions = step(record.life, event)
        record = entered(record, life)
        if do.Enqueue() in actions or do.Requeue() in actions:
            queue = self.rooms.target(record).queue
            if do.Requeue() in actions:
                self.live.discard(record.run_id)  # nobody is there to be watched until it has started
                queue.leave(record.run_id)
            try:
                agent_control.enqueue(self.rooms, record)
            except RunyardException as error:  # its target has become too small for it
                end = End(EndReason.LAUNCH_FAILED, error.message)
                return self._decide(record, on.LaunchFailed(end))
            # placed already: decided before, and then there was no room on the disk to save it
            if queue.placement(record.run_id) or queue.place_if_first(record.run_id):
                return self._decide(record, on.Placed())
            return record, [action for action in actions if action == do.Requeue()]
        return record, actions

    def _carry_out(self, record: RunRecord, actions: list[do.Action]) -> None:
        ended = record.life.state.is_terminal
        if ended:
            self.live.discard(record.run_id)
        if ended or record.life.state in (RunState.RUNNING, RunState.CANCEL_REQUESTED):
            self.activities.forget(record.run_id)  # the state says it all
        left = self.rooms.target(record) if do.LeaveQueue() in actions else None
        if left is not None:  # before anybody is told: whoever waited for the end may delete the target
            left.queue.leave(record.run_id)
        self.bell.ring(record.run_id, urgent=ended)
        # nobody finalizes a run that never began, and its code may have been laid out for it
        never_began = record.life.end is not None and record.life.end.reason is EndReason.LAUNCH_FAILED
        if ended and (never_began or do.StopAgent() in actions):
            self._in(self._acting, record.run_id, lambda: finalize.tidy(self.rooms, record))
        for action in actions:
            if action != do.LeaveQueue():
                self._perform(record, action)
        if left is not None:
            self.place_waiting(left)
        for tell in self.on_change:
            tell(record)

    def activity(self, record: RunRecord) -> tuple[str, float | None]:
        """What the run is doing or waiting for, and since when."""
        if record.life.state is RunState.QUEUED:
            return self.rooms.target(record).queue.reason(record.run_id), record.timeline.get(RunState.QUEUED.value)
        return self.activities.get(record.run_id)

    def doing(self, run_id: str, status: str, target: str | None) -> str:
        """The same in words alone, for whoever has no record at hand."""
        if status == RunState.QUEUED.value:
            return self.rooms.targets.get(target or "local").queue.reason(run_id)
        return self.activities.get(run_id)[0]

    def say(self, run_id: str, text: str) -> None:
        """What the run is waiting for, said by its target; "" = nothing any more."""
        if text:
            self.activities.set(run_id, text)
        else:
            self.activities.forget(run_id)
        self.bell.ring(run_id)

    @property
    def busy(self) -> bool:
        """Whether a run of the yard's own is under way, in any state before its end."""
        return bool(self.rooms.runs.unfinished())

    def recover(self) -> None:
        """After a start of the yard: every run that has not ended is taken up again."""
        for record in self.rooms.runs.unfinished():
            if not record.life.managed:
                self.live.add(record.run_id)
            try:
                if record.life.state is RunState.STARTING and not agent_control.is_handed_over(self.rooms, record):
                    # nobody was asked to start it, and its place in line is forgotten: it asks for one again
                    self.post(record.run_id, on.Waiting())
                self.post(record.run_id, on.YardRestarted())
            except RunyardException as error:  # one run that cannot go on must not keep the yard closed
                log.warning("run %s cannot be taken up: %s", record.run_id, error)
                self.post(record.run_id, on.MarkedFailed(End(EndReason.LAUNCH_FAILED, error.message)))
            except Exception:  # nor one that something of ours cannot cope with
                log.exception("run %s could not be taken up", record.run_id)

    def place_waiting(self, target: Target) -> None:
        for placement in target.queue.place():
            start = partial(self.post, placement.run_id, on.Placed())
            try:
                start()
            except RunNotFound:  # in line and never taken in: there was no room on the disk for it
                target.queue.leave(placement.run_id)
            except OperationalError as error:
                if not is_full(error):
                    raise
                self._in(self._acting, placement.run_id, start)  # its place is taken: somebody must go on with it

    def close(self) -> None:
        self._closing.set()
        for abandoned in list(self._abandoned.values()):
            abandoned.set()
        self._preparing.shutdown(wait=False, cancel_futures=True)
        self._acting.shutdown(wait=False, cancel_futures=True)
        self._carrying.shutdown(wait=False, cancel_futures=True)
        self._reading.shutdown(wait=False, cancel_futures=True)

    def _perform(self, record: RunRecord, action: do.Action) -> None:
        run_id = record.run_id
        if isinstance(action, do.Prepare):
            abandoned = self._abandoned[run_id] = threading.Event()
            self._in(self._preparing, run_id, lambda: self._prepare(record, abandoned))
        elif isinstance(action, do.AbandonPreparation):
            self._abandoned.setdefault(run_id, threading.Event()).set()
        elif isinstance(action, do.Requeue):  # others may fit in what it gave back
            self.place_waiting(self.rooms.target(record))
        elif isinstance(action, do.StartAgent):
            self._in(self._pool_of(record), run_id, lambda: self._start(record))
        elif isinstance(action, do.Watch):
            if record.life.managed:  # another's process holds no share of a target
                agent_control.take_up(self.rooms, record)
            self.live.add(run_id)
        elif isinstance(action, do.StopAgent):
            if run_id in self._abandoned:  # its data is still on the way
                self._abandoned[run_id].set()
            self._in(self._acting, run_id, lambda: agent_control.stop(self.rooms, record))
        elif isinstance(action, do.Finalize):
            if record.life.managed:
                self._in(self._pool_of(record), run_id, lambda: self._finalize(record))
            else:  # whoever calls complete() asks for the status next
                try:
                    self._finalize(record)
                except OperationalError:  # such as a full disk: tried again, until there is room
                    self._in(self._acting, run_id, lambda: self._finalize(record))
        else:
            raise AssertionError(f"nobody does {action}")

    def _pool_of(self, record: RunRecord) -> ThreadPoolExecutor:
        return self._carrying if data.uses_of(record) else self._acting

    def _in(self, pool: ThreadPoolExecutor, run_id: str, work: Callable[[], object]) -> None:
        def guarded() -> None:
            while not self._closing.is_set():
                try:
                    work()
                    return
                except Exception as error:
                    if not is_full(error) and not self._closing.is_set():
                        log.exception("run %s: an action failed", run_id)
                        self._give_up(run_id)
                        return
                # somebody may make room; every action may be done twice, as after a restart
                self.activities.set(run_id, "waiting for room on the yard's disk, which is full")
                self._closing.wait(_FULL_DISK_S)

        try:
            pool.submit(guarded)
        except RuntimeError:  # the yard is closing: the next one takes the run up again
            log.info("run %s: left for the next yard", run_id)

    def _give_up(self, run_id: str) -> None:
        said = "an internal error of the yard; see yard.log in its home folder"
        record = self.post(run_id, on.MarkedFailed(End(EndReason.LAUNCH_FAILED, said)))
        if (
            record.life.state is RunState.CANCEL_REQUESTED
        ):  # whether there is an agent or not is the watcher's to find out
            self.live.add(run_id)
        if record.life.state is RunState.FINALIZING:  # its end is known: it must not hang there
            self.post(run_id, on.Finalized(), warnings=(incomplete(f"outputs/ is incomplete: {said}"),))

    def _prepare(self, record: RunRecord, abandoned: threading.Event) -> None:
        if agent_control.is_handed_over(
            self.rooms, record
        ):  # by a former yard: it waits in its target's own line, with all
            self._abandoned.pop(record.run_id, None)
            self.post(record.run_id, on.Prepared())
            return
        try:
            found = prepare.prepare(self.rooms, record, self._say_for(record.run_id), abandoned)
        except RunyardException as error:
            if not abandoned.is_set():
                self.post(record.run_id, on.PreparationFailed(prepare.failure(self.rooms, record, error)))
            self._abandoned.pop(record.run_id, None)
            return
        try:
            if data.uses_of(record):
                self.post(record.run_id, on.Noted(), phase=DATA)
                data.fill(self.rooms, record, self._say_for(record.run_id), abandoned)
        except RunyardException as error:
            if not abandoned.is_set():
                self.post(record.run_id, on.PreparationFailed(prepare.data_failure(error)))
            return
        finally:
            self._abandoned.pop(record.run_id, None)
        self.post(record.run_id, on.Prepared(), environment_key=found.key, warnings=notes(found.warnings))

    def _start(self, record: RunRecord) -> None:
        self.activities.set(record.run_id, "starting the script")
        abandoned = self._abandoned.setdefault(record.run_id, threading.Event())
        try:
            changed = dataset_versions.changed_since(self.rooms, record)
            if changed:
                self.post(record.run_id, on.Noted(), warnings=notes(changed))
            agent_control.start(self.rooms, record, self._say_for(record.run_id), abandoned)
        except (RunyardException, OSError) as error:
            end = End(EndReason.LAUNCH_FAILED, str(error), node="local")
            self.post(record.run_id, on.LaunchFailed(end, record.life.attempt))
            return
        finally:
            self._abandoned.pop(record.run_id, None)
        self.live.add(record.run_id)
        self.read_news(record.run_id)

    def hear(self, run_id: str) -> None:
        """The run's agent wrote something: it is read now, instead of in a second."""
        with suppress(RuntimeError):  # the yard is closing
            self._reading.submit(self._read_on, run_id)

    def _read_on(self, run_id: str) -> None:
        try:
            self.read_news(run_id)
        except Exception as error:  # whatever it is, the watcher meets it again in a second
            if not is_full(error):
                log.exception("run %s: what its agent wrote could not be read", run_id)

    def read_news(self, run_id: str) -> None:
        """What the agent wrote since; reading a line twice is harmless."""
        told = [(event or on.Noted(), warnings) for event, warnings in agent_control.news(self.rooms, run_id)]
        while told:
            told = self._take_in(run_id, told)

    def _take_in(self, run_id: str, told: list[Told]) -> list[Told]:
        """Up to the first event that something has to be done about, saved once; what is left over is returned. A short
        script's start and end are read together: each saved by itself, every run would cost one commit more."""
        with self._deciding:
            record = before = self.rooms.runs.load(run_id)
            actions: list[do.Action] = []
            while told and not actions:
                (event, warnings), told = told[0], told[1:]
                record, actions = self._decide(_noted(record, warnings), event)
            if record != before:
                record = self.rooms.runs.save(record)
            elif not actions:
                return told
        self._carry_out(record, actions)
        return told

    def _finalize(self, record: RunRecord) -> None:
        self.activities.set(record.run_id, "keeping outputs")
        warnings = finalize.finalize(self.rooms, record, self._say_for(record.run_id))
        finalize.tidy(self.rooms, self.post(record.run_id, on.Finalized(), warnings=warnings))

    def _say_for(self, run_id: str) -> Callable[[str], None]:
        return lambda text: self.say(run_id, text)


def _noted(record: RunRecord, warnings: tuple[RunWarning, ...], environment_key: str | None = None) -> RunRecord:
    said = record.warnings + tuple(warning for warning in warnings if warning not in record.warnings)
    return replace(record, warnings=said, environment_key=environment_key or record.environment_key)
