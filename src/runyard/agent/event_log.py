"""The agent's event log: events are written to the run's folder first, then the yard is notified."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from runyard import clock
from runyard.agent.notify import notify
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_DISK_FULL_TIMEOUT_S = 60.0


class EventLog:
    def __init__(self, run_id: str, folder: RunFolder, notify_socket: str, attempt: int = 1) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._folder = folder
        self._notify_socket = notify_socket
        self._unwritten: list[bytes] = []

    def event_names(self) -> set[str]:
        """Names of the events of this attempt so far. A line that a crash truncated is ignored."""
        names = set()
        if self._folder.events.exists():
            for line in self._folder.events.read_bytes().splitlines():
                try:
                    event = json.loads(line)
                    if event.get("attempt", 1) >= self._attempt:
                        names.add(str(event["event"]))
                except (ValueError, KeyError, TypeError):
                    continue
        return names

    def script_started(self, pid: int) -> None:
        """Does not wait on a full disk, which must not delay the script: then it is written together with the end."""
        self._write({"event": "script_started", "at": clock.now(), "pid": pid}, timeout_s=0.0)

    def notify_started(self) -> None:
        self._notify(0.2)

    def record(self, event: str, **facts: Any) -> None:
        """Write an event that needs no action by the yard, so it is not notified."""
        self._write({"event": event, "at": clock.now(), **facts}, timeout_s=1.0, durable=False)

    def stalled(self, ranks: dict[str, str]) -> None:
        self.record("stalled", ranks=ranks)
        self._notify(0.2)

    def script_ended(self, end: End) -> None:
        self._write_end("script_ended", end)

    def launch_failed(self, end: End) -> None:
        self._write_end("launch_failed", end)

    def _write_end(self, event: str, end: End) -> None:
        self._write({"event": event, "at": clock.now(), "end": to_json(end)}, timeout_s=_DISK_FULL_TIMEOUT_S)
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
        file = os.open(self._folder.events, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
