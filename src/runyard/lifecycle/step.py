"""The transition function ``step(life, event) -> (life, actions)``. Pure: no clock, no files, no network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runyard.lifecycle import actions as do
from runyard.lifecycle import events as on
from runyard.lifecycle.state import TERMINAL, Attempt, End, EndReason, Life, RunState

S = RunState
Outcome = tuple[Life, list[do.Action]]
CANCELED = End(EndReason.CANCELED, "canceled")


def step(life: Life, event: on.Event) -> Outcome:
    handler = TRANSITIONS.get((life.state, type(event)))
    # events of a finished attempt may be read again
    is_current = getattr(event, "attempt", 0) in (0, life.attempt)
    return handler(life, event) if handler and is_current else (life, [])


def _go_to(state: RunState, *actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: (replace(life, state=state), list(actions))


def _end_with_event(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: _end_before_start(life, event.end, *actions)


def _cancel_before_start(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: _end_before_start(life, _cancel_end(event), *actions)


def _end_before_start(life: Life, end: End, *actions: do.Action) -> Outcome:
    """End a run whose script has not started; there is something to finalize only after earlier attempts."""
    if life.earlier_attempts:
        return replace(life, state=S.FINALIZING, end=end), [*actions, do.Finalize()]
    return replace(life, state=end.state, end=end), list(actions)


def _cancel_end(event: on.CancelRequested) -> End:
    return replace(CANCELED, message=event.message) if event.message else CANCELED


def _cancel_running(life: Life, event: on.CancelRequested) -> Outcome:
    if life.is_sweep:  # its child runs are stopped first
        return replace(life, state=S.CANCEL_REQUESTED, end=CANCELED), []
    if not life.managed:
        return replace(life, state=S.FINALIZING, end=_cancel_end(event)), [do.Finalize()]
    return replace(life, state=S.CANCEL_REQUESTED, end=_cancel_end(event)), [do.StopAgent()]


def _fail_running(life: Life, event: on.MarkedFailed) -> Outcome:
    if life.is_sweep:
        return replace(life, state=S.CANCEL_REQUESTED, end=event.end), []
    if not life.managed:
        return replace(life, state=S.FINALIZING, end=event.end), [do.Finalize()]
    return replace(life, state=S.CANCEL_REQUESTED, end=event.end), [do.StopAgent()]


def _complete_running(life: Life, event: Any) -> Outcome:
    if life.managed or life.is_sweep:  # in a submitted script complete() only flushes; the run ends with the script
        return life, []
    return replace(life, state=S.FINALIZING, end=End(EndReason.SUCCEEDED)), [do.Finalize()]


def _script_ended(life: Life, event: Any) -> Outcome:
    if _should_retry(life, event.end):
        return _retry(life, event.end)
    return replace(life, state=S.FINALIZING, end=event.end), [do.Finalize()]


def _launch_failed(life: Life, event: on.LaunchFailed) -> Outcome:
    if _should_retry(life, event.end):
        return _retry(life, event.end)
    return _end_before_start(life, event.end, do.LeaveQueue())


def _should_retry(life: Life, end: End) -> bool:
    # the loss of the first node's agent is retried like the loss of any other node
    reason = EndReason.NODE_LOST if end.reason is EndReason.AGENT_LOST else end.reason
    return life.attempt < life.max_attempts and bool({reason.value, end.reason.value} & set(life.retry_on))


def _retry(life: Life, end: End) -> Outcome:
    attempts = (*life.earlier_attempts, Attempt(end))
    return replace(life, state=S.QUEUED, end=None, earlier_attempts=attempts), [do.Requeue()]


def _stopped(life: Life, event: Any) -> Outcome:
    """End with the requested reason, unless the script had finished before the signal reached it."""
    requested, actual = life.end or CANCELED, event.end
    if actual.reason in (EndReason.SUCCEEDED, EndReason.TIMED_OUT):
        end = actual
    else:
        end = replace(requested, exit_code=actual.exit_code, signal=actual.signal, processes_left=actual.processes_left)
    return replace(life, state=S.FINALIZING, end=end), [do.Finalize()]


def _children_ended(life: Life, event: on.ChildrenEnded) -> Outcome:
    requested = life.end if life.state is S.CANCEL_REQUESTED else None
    return replace(life, state=S.FINALIZING, end=requested or event.end), [do.Finalize()]


def _unless_sweep(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    """Perform the actions, except for a sweep: it has no agent, and its driver watches it."""
    return lambda life, event: (life, [] if life.is_sweep else list(actions))


def _finalized(life: Life, event: Any) -> Outcome:
    end = life.end or End(EndReason.AGENT_LOST, "the agent ended without reporting a result")
    return replace(life, state=end.state, end=end), [do.LeaveQueue()]


def _resume(life: Life, event: on.Resumed) -> Outcome:
    if life.managed or life.is_sweep:  # it ends with its script or its child runs
        return life, []
    return replace(life, state=S.RUNNING, end=None), []


TRANSITIONS: dict[tuple[RunState, type[on.Event]], Callable[[Life, Any], Outcome]] = {
    (S.NOT_STARTED, on.Submitted): _go_to(S.PREPARING, do.Prepare()),
    (S.NOT_STARTED, on.Opened): _go_to(S.RUNNING),
    (S.NOT_STARTED, on.CancelRequested): _cancel_before_start(),
    (S.NOT_STARTED, on.MarkedFailed): _end_with_event(),
    (S.NOT_STARTED, on.YardRestarted): _go_to(S.PREPARING, do.Prepare()),
    (S.PREPARING, on.Prepared): _go_to(S.QUEUED, do.Enqueue()),
    (S.PREPARING, on.PreparationFailed): _end_with_event(),
    # StopAgent: after a restart, a run that already waits in the target's own queue is prepared again
    (S.PREPARING, on.CancelRequested): _cancel_before_start(do.AbandonPreparation(), do.StopAgent()),
    (S.PREPARING, on.MarkedFailed): _end_with_event(do.AbandonPreparation(), do.StopAgent()),
    (S.PREPARING, on.YardRestarted): _go_to(S.PREPARING, do.Prepare()),
    (S.QUEUED, on.Placed): _go_to(S.STARTING, do.StartAgent()),
    # a run in the queue of the target's own scheduler: its agent starts without a Placed event
    (S.QUEUED, on.ScriptStarted): _go_to(S.RUNNING),
    (S.QUEUED, on.ScriptEnded): _script_ended,
    (S.QUEUED, on.LaunchFailed): _launch_failed,
    (S.QUEUED, on.AgentLost): _script_ended,
    (S.QUEUED, on.CancelRequested): _cancel_before_start(do.StopAgent(), do.LeaveQueue()),
    (S.QUEUED, on.MarkedFailed): _end_with_event(do.StopAgent(), do.LeaveQueue()),
    # prepare again: the environment may have been deleted since
    (S.QUEUED, on.YardRestarted): _go_to(S.PREPARING, do.Prepare()),
    (S.STARTING, on.Waiting): _go_to(S.QUEUED),
    (S.STARTING, on.ScriptStarted): _go_to(S.RUNNING),
    (S.STARTING, on.ScriptEnded): _script_ended,
    (S.STARTING, on.LaunchFailed): _launch_failed,
    (S.STARTING, on.AgentLost): _script_ended,
    (S.STARTING, on.CancelRequested): _cancel_running,
    (S.STARTING, on.MarkedFailed): _fail_running,
    (S.STARTING, on.YardRestarted): _go_to(
        S.STARTING, do.StartAgent()
    ),  # safe: a second agent finds the lock of the first
    (S.RUNNING, on.ScriptEnded): _script_ended,
    (S.RUNNING, on.AgentLost): _script_ended,
    (S.RUNNING, on.CancelRequested): _cancel_running,
    (S.RUNNING, on.MarkedFailed): _fail_running,
    (S.RUNNING, on.MarkedComplete): _complete_running,
    (S.RUNNING, on.ChildrenEnded): _children_ended,
    (S.RUNNING, on.YardRestarted): _unless_sweep(do.Watch()),
    (S.CANCEL_REQUESTED, on.ScriptEnded): _stopped,
    (S.CANCEL_REQUESTED, on.AgentLost): _stopped,
    (S.CANCEL_REQUESTED, on.LaunchFailed): _stopped,
    (S.CANCEL_REQUESTED, on.ChildrenEnded): _children_ended,
    (S.CANCEL_REQUESTED, on.CancelRequested): _unless_sweep(do.StopAgent()),
    (S.CANCEL_REQUESTED, on.YardRestarted): _unless_sweep(do.Watch(), do.StopAgent()),
    (S.FINALIZING, on.Finalized): _finalized,
    (S.FINALIZING, on.YardRestarted): _go_to(S.FINALIZING, do.Finalize()),
    (S.COMPLETED, on.Resumed): _resume,
    (S.FAILED, on.Resumed): _resume,
    (S.CANCELED, on.Resumed): _resume,
}

# The reason why an event has no effect in every other state; a test checks all pairs.
IGNORED: dict[type[on.Event], str] = {
    on.Submitted: "a repeated submission is the same run",
    on.Opened: "opened again by the same process",
    on.Prepared: "the run was canceled while its environment was built",
    on.PreparationFailed: "the run was canceled while its environment was built",
    on.Placed: "the run left the queue at the same time",
    on.Waiting: "still waiting; or its agent started, or the run ended, at the same time",
    on.LaunchFailed: "reported twice, or after the run ended",
    on.ScriptStarted: "read again after a restart, or from an earlier attempt",
    on.ScriptEnded: "read again after a restart, or from an earlier attempt",
    on.AgentLost: "the agent reported the end before it died",
    on.Finalized: "reported twice",
    on.CancelRequested: "the run has ended or is ending",
    on.ChildrenEnded: "the sweep has ended or is ending",
    on.MarkedComplete: "a submitted run ends with its script; an ended run does not change",
    on.MarkedFailed: "the run has ended or is ending",
    on.Resumed: "the run has not ended, or is ending",
    on.DetailsChanged: "only the run's details change",
    on.YardRestarted: "an ended run does not change",
}

__all__ = ["IGNORED", "TERMINAL", "TRANSITIONS", "step"]
