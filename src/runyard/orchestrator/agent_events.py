"""Reads the events that a run's agents have recorded.

The log is in the run's folder, where the script can write to it: whatever it contains, reading it must not fail,
because a run whose events cannot be read would never end.
"""

from __future__ import annotations

from typing import Any, Optional

from runyard.agent.event_log import read_events as read_log
from runyard.errors import RunyardException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End
from runyard.lifecycle.warning import RunWarning
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json

AgentEvent = tuple[Optional[on.Event], tuple[RunWarning, ...]]

_MAX_CHARACTERS = 100_000
_MAX_NUMBER = 1 << 31
_MAX_RANKS = 1000
_MAX_EVENTS = 200
_DAMAGED = RunWarning(f"{RunFolder.EVENTS} has content that was not written by the run's agent; it was ignored")


def read_events(folder: RunFolder) -> list[AgentEvent]:
    """The events and warnings that the agent has recorded, from the beginning: they are few, and may be repeated."""
    log, is_damaged = read_log(folder.events)
    parsed = list(dict.fromkeys(map(_parse, log)))  # each once: only the first of equal events has an effect
    if len(parsed) > 2 * _MAX_EVENTS:
        parsed, is_damaged = [*parsed[:_MAX_EVENTS], *parsed[-_MAX_EVENTS:]], True
    events = [event for event in parsed if event is not None]
    if is_damaged or len(events) < len(parsed):
        events.append((None, (_DAMAGED,)))
    return events


def _parse(event: dict[str, Any]) -> AgentEvent | None:
    """None if the event is not valid."""
    name, attempt = event["event"], event["attempt"]
    if name == "script_started":
        return on.ScriptStarted(attempt=attempt), ()
    if name in ("script_ended", "launch_failed"):
        end = _parse_end(event.get("end"))
        if end is None:
            return None
        return (on.ScriptEnded if name == "script_ended" else on.LaunchFailed)(end, attempt), ()
    if name == "stalled":
        ranks = event.get("ranks")
        if not isinstance(ranks, dict) or len(ranks) > _MAX_RANKS:
            return None
        stacks = "; ".join(f"rank {rank}: {position}" for rank, position in sorted(ranks.items()))
        return None, (RunWarning(_text(f"the run stalled, see logs/stalled/: {stacks}")),)
    if "warning" in event:
        return None, (RunWarning(_text(str(event["warning"]))),)
    return None, ()


def _parse_end(value: Any) -> End | None:
    if not isinstance(value, dict) or not isinstance(value.get("reason"), str):
        return None
    try:
        end = from_json(End, value)
    except (RunyardException, ValueError, TypeError, KeyError, AttributeError):
        return None
    numbers = (end.exit_code, end.rank, end.processes_left)
    if not all(number is None or (type(number) is int and abs(number) < _MAX_NUMBER) for number in numbers):
        return None
    texts = {
        name: _text(text) if isinstance(text := getattr(end, name), str) else None
        for name in ("message", "signal", "node", "traceback", "last_lines")
    }
    return End(
        reason=end.reason,
        message=texts["message"] or "",
        exit_code=end.exit_code,
        signal=texts["signal"],
        rank=end.rank,
        node=texts["node"],
        traceback=texts["traceback"] or "",
        last_lines=texts["last_lines"] or "",
        processes_left=end.processes_left,
    )


def _text(text: str) -> str:
    """Shorten a text, and replace characters that cannot be encoded, because the database would refuse them."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()
