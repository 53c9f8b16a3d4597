"""The agent's event log: events are written to the run's folder first, then the yard is notified."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Optional

from runyard import clock
from runyard.agent.notify import notify
from runyard.lifecycle.state import End
from runyard.posix.regular_file import UNREADABLE, NotRegularFile, open_regular, read_range
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json
from runyard.spec.redaction import Redactor, variable_spans
from runyard.spec.strict_json import parse_json

_DISK_FULL_TIMEOUT_S = 60.0
_MAX_BYTES = 1 << 21


def read_events(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The events of a log, each with its name ("event") and "attempt"; and whether there is anything else in it.

    A script can write to the log of its run. Of a log that is larger than any agent writes, the begin and the end are
    read, where the agent's own events are.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return [], False
    except UNREADABLE:
        return [], True
    try:
        size = os.fstat(file).st_size
        data = read_range(file, 0, min(size, _MAX_BYTES))
        if size > _MAX_BYTES:
            data += b"\n" + read_range(file, size - _MAX_BYTES, _MAX_BYTES).partition(b"\n")[2]
    finally:
        os.close(file)
    lines = data.split(b"\n")
    events = [_parse_event(line) for line in lines]
    # the last line is incomplete while it is written, or if the agent was killed
    has_others = any(event is None and line.strip() for event, line in zip(events[:-1], lines))
    return [event for event in events if event is not None], has_others


def _parse_event(line: bytes) -> Optional[dict[str, Any]]:
    try:
        event = parse_json(line, max_bytes=_MAX_BYTES)
    except ValueError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    event.setdefault("attempt", 1)
    return event if type(event["attempt"]) is int else None


class EventLog:
    def __init__(self, run_id: str, folder: RunFolder, notify_socket: str, attempt: int = 1) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._folder = folder
        self._notify_socket = notify_socket
        self._unwritten: list[bytes] = []
        self._secrets: dict[str, str] = {}

    def hide(self, variables: dict[str, str]) -> None:
        """Mask the values of these variables in events: error messages and the last lines of a log may have them."""
        self._secrets = variables

    def redact(self, value: Any) -> Any:
        """Mask secrets in a text or a JSON value."""
        if not self._secrets:
            return value
        secrets = self._secrets.items()
        parts = [secret[start:end] for name, secret in secrets for start, end in variable_spans(name, secret)]
        return Redactor([*self._secrets.values(), *parts]).json(value)

    def event_names(self) -> set[str]:
        """Names of the events of this attempt so far. A line that a crash truncated is ignored."""
        events, _ = read_events(self._folder.events)
        return {str(event["event"]) for event in events if event["attempt"] >= self._attempt}

    def script_started(self, pid: int) -> None:
        """Does not wait on a full disk, which must not delay the script: then it is written together with the end."""
        self._write({"event": "script_started", "at": clock.now(), "pid": pid}, timeout_s=0.0)

    def notify_started(self) -> None:
        self._notify(0.2)

    def record(self, event: str, **facts: Any) -> None:
        """Write an event that needs no action by the yard, so it is not notified."""
        self._write({"event": event, "at": clock.now(), **self.redact(facts)}, timeout_s=1.0, durable=False)

    def stalled(self, ranks: dict[str, str]) -> None:
        self.record("stalled", ranks=ranks)
        self._notify(0.2)

    def script_ended(self, end: End) -> None:
        self._write_end("script_ended", end)

    def launch_failed(self, end: End) -> None:
        self._write_end("launch_failed", end)

    def _write_end(self, event: str, end: End) -> None:
        facts = to_json(end)
        if end.message or end.last_lines:  # most runs succeed, and have no text to mask
            facts = self.redact(facts)
        self._write({"event": event, "at": clock.now(), "end": facts}, timeout_s=_DISK_FULL_TIMEOUT_S)
        self._notify(1.0)

    def _write(self, event: dict[str, Any], *, timeout_s: float, durable: bool = True) -> None:
        """Write the event, retrying on a full disk; the agent holds the run's lock until then."""
        self._unwritten.append(json.dumps({**event, "attempt": self._attempt}).encode() + b"\n")
        deadline = clock.monotonic() + timeout_s
        while self._unwritten:
            try:
                self._append(self._unwritten[0], durable)
                del self._unwritten[0]
            except OSError:
                if clock.monotonic() >= deadline:
                    return
                time.sleep(0.2)

    def _append(self, line: bytes, durable: bool) -> None:
        try:
            file = open_regular(self._folder.events, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        except NotRegularFile:  # the script has replaced it, and its end must be recorded nevertheless
            self._folder.events.rename(f"{self._folder.events}.{time.monotonic_ns()}.replaced")
            file = open_regular(self._folder.events, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line  # the last line is incomplete: ours must not continue it
            if os.write(file, line) != len(line):
                os.ftruncate(file, size)  # this agent is the only writer, so a partial line can be removed
                raise OSError("the event was only partly written")
            if durable:
                os.fsync(file)
        finally:
            os.close(file)

    def _notify(self, timeout_s: float) -> None:
        if self._notify_socket:
            notify(self._notify_socket, self._run_id, timeout_s)
