from __future__ import annotations

import inspect

import pytest

from runyard.lifecycle import actions as do
from runyard.lifecycle import events as on
from runyard.lifecycle.state import TERMINAL, End, EndReason, Life, RunState
from runyard.lifecycle.step import IGNORED, TRANSITIONS, step

EVENTS = [
    kind for _, kind in inspect.getmembers(on, inspect.isclass) if issubclass(kind, on.Event) and kind is not on.Event
]
FAILED = End(EndReason.SCRIPT_FAILED, "ValueError: bad", exit_code=1)


def make_event(kind: type[on.Event]) -> on.Event:
    return kind(FAILED) if "end" in inspect.signature(kind).parameters else kind()  # type: ignore[call-arg]


@pytest.mark.parametrize("state", list(RunState))
@pytest.mark.parametrize("kind", EVENTS)
def test_every_pair_of_state_and_event_has_a_transition_or_is_ignored(state: RunState, kind: type[on.Event]) -> None:
    life = Life(state, FAILED if state in (RunState.FINALIZING, RunState.CANCEL_REQUESTED) else None)
    after, actions = step(life, make_event(kind))
    if (state, kind) in TRANSITIONS:
        assert isinstance(after.state, RunState)
    else:
        assert IGNORED.get(kind)
        assert (after, actions) == (life, [])


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("kind", EVENTS)
def test_an_ended_run_never_changes(state: RunState, kind: type[on.Event]) -> None:
    life = Life(state, FAILED)
    assert step(life, make_event(kind)) == (life, [])


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_ended_run_that_the_yard_did_not_start_can_be_resumed(state: RunState) -> None:
    life, actions = step(Life(state, FAILED, managed=False), on.Resumed())
    assert (life.state, life.end, actions) == (RunState.RUNNING, None, [])
    life, _ = step(life, on.MarkedComplete())
    assert step(life, on.Finalized())[0].state is RunState.COMPLETED


@pytest.mark.parametrize("state", sorted(set(RunState) - TERMINAL))
def test_only_ended_runs_are_resumed(state: RunState) -> None:
    life = Life(state, managed=False)
    assert step(life, on.Resumed()) == (life, [])


def test_a_sweep_is_not_resumed() -> None:
    life = Life(RunState.FAILED, FAILED, managed=False, is_sweep=True)
    assert step(life, on.Resumed()) == (life, [])


def walk(*events: on.Event, managed: bool = True) -> Life:
    life = Life(managed=managed)
    for event in events:
        life, _ = step(life, event)
    return life


def test_a_successful_run_is_completed() -> None:
    ended = on.ScriptEnded(End(EndReason.SUCCEEDED, exit_code=0))
    life = walk(on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted(), ended, on.Finalized())
    assert life.state is RunState.COMPLETED


def test_a_failed_script_fails_the_run_with_its_message() -> None:
    life = walk(on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted(), on.ScriptEnded(FAILED), on.Finalized())
    assert life.state is RunState.FAILED
    assert life.end == FAILED


@pytest.mark.parametrize(
    "before",
    [(), (on.Submitted(),), (on.Submitted(), on.Prepared())],
    ids=["not started", "preparing", "queued"],
)
def test_cancel_before_the_start_ends_the_run_immediately(before: tuple[on.Event, ...]) -> None:
    assert walk(*before, on.CancelRequested()).state is RunState.CANCELED


def test_a_run_in_the_queue_of_an_external_scheduler_is_queued_until_its_script_starts() -> None:
    waiting = (on.Submitted(), on.Prepared(), on.Placed(), on.Waiting())
    assert walk(*waiting).state is RunState.QUEUED
    assert walk(*waiting, on.Waiting(), on.ScriptStarted()).state is RunState.RUNNING
    assert walk(*waiting, on.ScriptStarted(), on.Waiting()).state is RunState.RUNNING
    life, actions = step(walk(*waiting), on.CancelRequested())
    assert life.state is RunState.CANCELED
    assert actions == [do.StopAgent(), do.LeaveQueue()]


def test_cancel_of_a_running_run_stops_its_agent_first() -> None:
    life = walk(on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted())
    life, actions = step(life, on.CancelRequested())
    assert life.state is RunState.CANCEL_REQUESTED
    assert actions == [do.StopAgent()]
    killed = on.ScriptEnded(End(EndReason.KILLED, exit_code=-15, signal="SIGTERM", processes_left=0))
    life, _ = step(life, killed)
    life, _ = step(life, on.Finalized())
    assert life.state is RunState.CANCELED
    assert life.end is not None
    assert life.end.processes_left == 0


def test_a_script_that_finished_before_the_cancel_reached_it_is_completed() -> None:
    running = (on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted(), on.CancelRequested())
    life = walk(*running, on.ScriptEnded(End(EndReason.SUCCEEDED, exit_code=0)), on.Finalized())
    assert life.state is RunState.COMPLETED


def test_complete_inside_a_submitted_script_changes_nothing() -> None:
    life = walk(on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted())
    assert step(life, on.MarkedComplete()) == (life, [])


def test_complete_ends_an_interactive_run() -> None:
    assert walk(on.Opened(), on.MarkedComplete(), on.Finalized(), managed=False).state is RunState.COMPLETED


def test_a_run_that_exceeds_its_time_limit_is_canceled_with_the_reason() -> None:
    end = End(EndReason.TIMED_OUT, "exceeded its limit of 2 s")
    life = walk(on.Submitted(), on.Prepared(), on.Placed(), on.ScriptStarted(), on.ScriptEnded(end), on.Finalized())
    assert (life.state, life.end) == (RunState.CANCELED, end)


@pytest.mark.parametrize("state", [s for s in RunState if s not in TERMINAL])
def test_a_restarted_yard_acts_on_every_unfinished_run(state: RunState) -> None:
    _, actions = step(Life(state, FAILED), on.YardRestarted())
    assert actions


RETRIED = Life(RunState.RUNNING, max_attempts=2, retry_on=("node lost",))
LOST = End(EndReason.NODE_LOST, "n3: its agent has died", node="n3")


@pytest.mark.parametrize("reason", [EndReason.NODE_LOST, EndReason.AGENT_LOST])
def test_a_run_that_lost_a_node_is_queued_again_up_to_max_attempts(reason: EndReason) -> None:
    lost = End(reason, "lost")
    life, actions = step(RETRIED, on.ScriptEnded(lost, attempt=1))
    assert (life.state, life.attempt, life.end, actions) == (RunState.QUEUED, 2, None, [do.Requeue()])
    assert [attempt.end for attempt in life.earlier_attempts] == [lost]
    for event in (on.Placed(), on.ScriptStarted(attempt=2), on.ScriptEnded(lost, attempt=2)):
        life, actions = step(life, event)
    assert (life.state, life.end, actions) == (RunState.FINALIZING, lost, [do.Finalize()])


def test_events_of_an_earlier_attempt_are_ignored() -> None:
    life, _ = step(RETRIED, on.ScriptEnded(LOST, attempt=1))
    life, _ = step(life, on.Placed())
    for event in (on.ScriptStarted(attempt=1), on.ScriptEnded(LOST, attempt=1), on.AgentLost(LOST, attempt=1)):
        assert step(life, event) == (life, [])


def test_only_reasons_in_retry_on_are_retried() -> None:
    life, actions = step(RETRIED, on.ScriptEnded(FAILED))
    assert (life.state, actions) == (RunState.FINALIZING, [do.Finalize()])


def test_a_canceled_run_is_not_retried() -> None:
    life, _ = step(RETRIED, on.CancelRequested())
    life, _ = step(life, on.ScriptEnded(LOST))
    assert life.state is RunState.FINALIZING


@pytest.mark.parametrize("event", [on.CancelRequested(), on.LaunchFailed(FAILED), on.MarkedFailed(FAILED)])
def test_outputs_of_an_earlier_attempt_are_finalized_if_the_next_one_never_starts(event: on.Event) -> None:
    life, _ = step(RETRIED, on.ScriptEnded(LOST))
    life, actions = step(life, event)
    assert (life.state, actions[-1]) == (RunState.FINALIZING, do.Finalize())
    life, _ = step(life, on.Finalized())
    assert life.state in (RunState.CANCELED, RunState.FAILED)
