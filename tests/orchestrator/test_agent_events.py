"""The event log is in the run's folder, where its script can write to it."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.agent.event_log import EventLog
from runyard.launch.order import parse_order, read_attempt
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.lifecycle.step import step
from runyard.orchestrator.agent_events import read_events
from runyard.spec.folder import RunFolder

END = {"event": "script_ended", "attempt": 1, "end": {"reason": "succeeded", "exit_code": 0}}
BAD_LINES = [
    b"[]",
    b"null",
    b"1",
    b'"text"',
    b"{}",
    b"{",
    b"[" * 100_000,
    b'{"event": ' * 5000,
    b"\xff\xfe\x00",
    b"NaN",
    b'{"event": null}',
    b'{"event": ["script_ended"]}',
    b'{"event": "script_ended"}',
    b'{"event": "script_ended", "end": null}',
    b'{"event": "script_ended", "end": []}',
    b'{"event": "script_ended", "end": {"reason": null}}',
    b'{"event": "script_ended", "end": {"reason": "exploded"}}',
    b'{"event": "script_ended", "end": {"reason": "succeeded", "exit_code": 1e400}}',
    b'{"event": "script_ended", "end": {"reason": "succeeded", "exit_code": Infinity}}',
    b'{"event": "script_ended", "end": {"reason": "succeeded", "exit_code": 1' + b"0" * 5000 + b"}}",
    b'{"event": "script_ended", "end": {"reason": "succeeded", "exit_code": 99999999999}}',
    b'{"event": "script_ended", "end": {"reason": "succeeded", "rank": "x"}}',
    b'{"event": "script_ended", "attempt": "1", "end": {"reason": "succeeded"}}',
    b'{"event": "script_started", "attempt": true}',
    b'{"event": "stalled", "ranks": [1, 2]}',
    b'{"event": "stalled"}',
]
numbers = itertools.count()


def folder_with(tmp_path: Path, *lines: bytes) -> RunFolder:
    folder = RunFolder(tmp_path / str(next(numbers)))
    folder.root.mkdir()
    folder.events.write_bytes(b"\n".join(lines) + b"\n")
    return folder


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: repr(line[:40]))
def test_a_line_that_is_not_an_event_is_ignored_with_a_warning(tmp_path: Path, line: bytes) -> None:
    events = read_events(folder_with(tmp_path, line, json.dumps(END).encode()))
    assert [event for event, _ in events if event] == [on.ScriptEnded(End(EndReason.SUCCEEDED, exit_code=0), 1)]
    (warning,) = [warning for _, warnings in events for warning in warnings]
    assert "events.jsonl" in warning.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
FIELDS = st.fixed_dictionaries(
    {"event": st.sampled_from(["script_started", "script_ended", "launch_failed", "stalled", "warning", "x"])},
    optional={
        "attempt": st.integers(-5, 5) | JSON,
        "warning": JSON,
        "ranks": JSON,
        "end": JSON
        | st.fixed_dictionaries(
            {"reason": st.sampled_from([reason.value for reason in EndReason]) | JSON},
            optional=dict.fromkeys(("message", "exit_code", "signal", "rank", "node", "traceback"), JSON),
        ),
    },
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(FIELDS | JSON, max_size=6), garbage=st.binary(max_size=30))
def test_events_of_any_content_can_be_applied_and_stored(tmp_path: Path, values: list[Any], garbage: bytes) -> None:
    lines = [json.dumps(value).encode() for value in values]
    life = Life(state=RunState.RUNNING, max_attempts=2, retry_on=("killed",))
    for event, warnings in read_events(folder_with(tmp_path, *lines, garbage)):
        if event is not None:
            life, _ = step(life, event)
        for warning in warnings:
            warning.text.encode()
    if life.end is not None:
        f"{life.end.message}{life.end.traceback}{life.end.node}{life.end.signal}".encode()


def test_a_log_that_is_flooded_stays_bounded(tmp_path: Path) -> None:
    flood = [json.dumps({"event": "warning", "warning": f"number {n}"}).encode() for n in range(20_000)]
    events = read_events(folder_with(tmp_path, b"x" * 10_000_000, *flood, json.dumps(END).encode()))
    assert len(events) < 1000
    assert on.ScriptEnded(End(EndReason.SUCCEEDED, exit_code=0), 1) in [event for event, _ in events]


def test_the_incomplete_line_of_a_killed_agent_is_no_warning(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    folder.events.write_bytes(json.dumps({"event": "script_started"}).encode() + b'\n{"event": "script_en')
    assert read_events(folder) == [(on.ScriptStarted(attempt=1), ())]


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_an_agent_records_the_end_in_place_of_anything_that_its_script_put_there(tmp_path: Path, kind: str) -> None:
    folder = RunFolder(tmp_path)
    target = tmp_path / "target"
    target.write_text("untouched")
    if kind == "pipe":
        os.mkfifo(folder.events)
    elif kind == "folder":
        folder.events.mkdir()
    else:
        folder.events.symlink_to(target)
    assert [event for event, _ in read_events(folder) if event] == []
    EventLog("run", folder, "").script_ended(End(EndReason.SUCCEEDED, exit_code=0))
    assert [event for event, _ in read_events(folder)] == [on.ScriptEnded(End(EndReason.SUCCEEDED, exit_code=0), 1)]
    assert target.read_text() == "untouched"


@settings(max_examples=80, deadline=None)
@given(value=JSON, garbage=st.binary(max_size=50))
def test_an_order_of_any_content_is_a_value_error(value: Any, garbage: bytes) -> None:
    order = {"run_id": "r", "folder": "/f", "argv": ["x"], "launch": value, "resources": value, "nodes": value}
    for text in (garbage, json.dumps(value).encode(), json.dumps(order).encode(), b"[" * 10_000):
        try:
            parse_order(text)
        except ValueError:
            continue


def test_a_damaged_order_is_none(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    assert read_attempt(path) == 0
    for content in ("[]", '{"attempt": "1"}', '{"run_id": null, "folder": "x", "argv": []}', "{" * 10_000):
        path.write_text(content)
        assert read_attempt(path) == 0
