"""``step(life, event) -> (life, actions)``: the one author of states. Pure: no clock, no files, no network."""

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
    # what an attempt that is over said may be read again
    is_of_another = getattr(event, "attempt", 0) not in (0, life.attempt)
    return handler(life, event) if handler and not is_of_another else (life, [])


def _to(state: RunState, *actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: (replace(life, state=state), list(actions))


def _end_with_event(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: _never_started(life, event.end, *actions)


def _cancel_before_start(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    return lambda life, event: _never_started(life, _canceled(event), *actions)


def _never_started(life: Life, end: End, *actions: do.Action) -> Outcome:
    """Nothing ran, so there is nothing to finalize; unless it did in an earlier attempt."""
    if life.earlier:
        return replace(life, state=S.FINALIZING, end=end), [*actions, do.Finalize()]
    return replace(life, state=end.state, end=end), list(actions)


def _canceled(event: on.CancelRequested) -> End:
    return replace(CANCELED, message=event.message) if event.message else CANCELED


def _cancel_running(life: Life, event: on.CancelRequested) -> Outcome:
    if life.leads:  # its children are ended first
        return replace(life, state=S.CANCEL_REQUESTED, end=CANCELED), []
    if not life.managed:
        return replace(life, state=S.FINALIZING, end=_canceled(event)), [do.Finalize()]
    return replace(life, state=S.CANCEL_REQUESTED, end=_canceled(event)), [do.StopAgent()]


def _fail_running(life: Life, event: on.MarkedFailed) -> Outcome:
    if life.leads:
        return replace(life, state=S.CANCEL_REQUESTED, end=event.end), []
    if not life.managed:
        return replace(life, state=S.FINALIZING, end=event.end), [do.Finalize()]
    return replace(life, state=S.CANCEL_REQUESTED, end=event.end), [do.StopAgent()]


def _complete_running(life: Life, event: Any) -> Outcome:
    if life.managed or life.leads:  # complete() in a submitted script flushes; the script's own end decides
        return life, []
    return replace(life, state=S.FINALIZING, end=End(EndReason.SUCCEEDED)), [do.Finalize()]


def _script_ended(life: Life, event: Any) -> Outcome:
    if _is_tried_again(life, event.end):
        return _begun_anew(life, event.end)
    return replace(life, state=S.FINALIZING, end=event.end), [do.Finalize()]


def _launch_failed(life: Life, event: on.LaunchFailed) -> Outcome:
    if _is_tried_again(life, event.end):
        return _begun_anew(life, event.end)
    return _never_started(life, event.end, do.LeaveQueue())


def _is_tried_again(life: Life, end: End) -> bool:
    # whether the agent that vanished was the first node's or another's makes no difference to whoever waits
    reason = EndReason.NODE_LOST if end.reason is EndReason.AGENT_LOST else end.reason
    return life.attempt < life.max_attempts and bool({reason.value, end.reason.value} & set(life.retry_on))


def _begun_anew(life: Life, end: End) -> Outcome:
    return replace(life, state=S.QUEUED, end=None, earlier=(*life.earlier, Attempt(end))), [do.Requeue()]


def _stopped_as_asked(life: Life, event: Any) -> Outcome:
    """What was asked for decides, unless the script was through before the signal reached it."""
    asked, seen = life.end or CANCELED, event.end
    if seen.reason in (EndReason.SUCCEEDED, EndReason.TIMED_OUT):
        end = seen
    else:
        end = replace(asked, exit_code=seen.exit_code, signal=seen.signal, processes_left=seen.processes_left)
    return replace(life, state=S.FINALIZING, end=end), [do.Finalize()]


def _children_ended(life: Life, event: on.ChildrenEnded) -> Outcome:
    asked = life.end if life.state is S.CANCEL_REQUESTED else None
    return replace(life, state=S.FINALIZING, end=asked or event.end), [do.Finalize()]


def _unless_it_leads(*actions: do.Action) -> Callable[[Life, Any], Outcome]:
    """Whoever leads children has no agent, and is looked after by its own driver."""
    return lambda life, event: (life, [] if life.leads else list(actions))


def _finalized(life: Life, event: Any) -> Outcome:
    end = life.end or End(EndReason.AGENT_LOST, "ended without a word")
    return replace(life, state=end.state, end=end), [do.LeaveQueue()]


TRANSITIONS: dict[tuple[RunState, type[on.Event]], Callable[[Life, Any], Outcome]] = {
    (S.NOT_STARTED, on.Submitted): _to(S.PREPARING, do.Prepare()),
    (S.NOT_STARTED, on.Begun): _to(S.RUNNING),
    (S.NOT_STARTED, on.CancelRequested): _cancel_before_start(),
    (S.NOT_STARTED, on.MarkedFailed): _end_with_event(),
    (S.NOT_STARTED, on.YardRestarted): _to(S.PREPARING, do.Prepare()),
    (S.PREPARING, on.Prepared): _to(S.QUEUED, do.Enqueue()),
    (S.PREPARING, on.PreparationFailed): _end_with_event(),
    # the agent too: a run that a former yard handed over to its target's own line is prepared once more
    (S.PREPARING, on.CancelRequested): _cancel_before_start(do.AbandonPreparation(), do.StopAgent()),
    (S.PREPARING, on.MarkedFailed): _end_with_event(do.AbandonPreparation(), do.StopAgent()),
    (S.PREPARING, on.YardRestarted): _to(S.PREPARING, do.Prepare()),
    (S.QUEUED, on.Placed): _to(S.STARTING, do.StartAgent()),
    # in the yard's own line, or in that of a target: there, an agent begins without further notice
    (S.QUEUED, on.ScriptStarted): _to(S.RUNNING),
    (S.QUEUED, on.ScriptEnded): _script_ended,
    (S.QUEUED, on.LaunchFailed): _launch_failed,
    (S.QUEUED, on.AgentLost): _script_ended,
    (S.QUEUED, on.CancelRequested): _cancel_before_start(do.StopAgent(), do.LeaveQueue()),
    (S.QUEUED, on.MarkedFailed): _end_with_event(do.StopAgent(), do.LeaveQueue()),
    # the environment is asked for again: it is there already, or was pruned since
    (S.QUEUED, on.YardRestarted): _to(S.PREPARING, do.Prepare()),
    (S.STARTING, on.Waiting): _to(S.QUEUED),
    (S.STARTING, on.ScriptStarted): _to(S.RUNNING),
    (S.STARTING, on.ScriptEnded): _script_ended,
    (S.STARTING, on.LaunchFailed): _launch_failed,
    (S.STARTING, on.AgentLost): _script_ended,
    (S.STARTING, on.CancelRequested): _cancel_running,
    (S.STARTING, on.MarkedFailed): _fail_running,
    (S.STARTING, on.YardRestarted): _to(S.STARTING, do.StartAgent()),  # a second agent finds the first one's lock
    (S.RUNNING, on.ScriptEnded): _script_ended,
    (S.RUNNING, on.AgentLost): _script_ended,
    (S.RUNNING, on.CancelRequested): _cancel_running,
    (S.RUNNING, on.MarkedFailed): _fail_running,
    (S.RUNNING, on.MarkedComplete): _complete_running,
    (S.RUNNING, on.ChildrenEnded): _children_ended,
    (S.RUNNING, on.YardRestarted): _unless_it_leads(do.Watch()),
    (S.CANCEL_REQUESTED, on.ScriptEnded): _stopped_as_asked,
    (S.CANCEL_REQUESTED, on.AgentLost): _stopped_as_asked,
    (S.CANCEL_REQUESTED, on.LaunchFailed): _stopped_as_asked,
    (S.CANCEL_REQUESTED, on.ChildrenEnded): _children_ended,
    (S.CANCEL_REQUESTED, on.CancelRequested): _unless_it_leads(do.StopAgent()),
    (S.CANCEL_REQUESTED, on.YardRestarted): _unless_it_leads(do.Watch(), do.StopAgent()),
    (S.FINALIZING, on.Finalized): _finalized,
    (S.FINALIZING, on.YardRestarted): _to(S.FINALIZING, do.Finalize()),
}

# Why every other pair changes nothing; a test walks all of them.
IGNORED: dict[type[on.Event], str] = {
    on.Submitted: "a submission that is sent again is the same run",
    on.Begun: "opened again by the same process",
    on.Prepared: "the run was canceled while its environment was built",
    on.PreparationFailed: "the run was canceled while its environment was built",
    on.Placed: "the run left the queue in the same moment",
    on.Waiting: "it waits on; or its agent began, or the run ended, in the same moment",
    on.LaunchFailed: "reported twice, or after the run ended",
    on.ScriptStarted: "read again after a restart, or of an attempt that is over",
    on.ScriptEnded: "read again after a restart, or of an attempt that is over",
    on.AgentLost: "the agent's last words came first",
    on.Finalized: "reported twice",
    on.CancelRequested: "the run has ended or is about to",
    on.ChildrenEnded: "the sweep has ended or is about to",
    on.MarkedComplete: "a submitted run ends with its script; an ended run stays as it is",
    on.MarkedFailed: "the run has ended or is about to",
    on.Noted: "it is told, and the run goes on",
    on.YardRestarted: "an ended run is left alone",
}

__all__ = ["IGNORED", "TERMINAL", "TRANSITIONS", "step"]
