"""What happened, written to the run's folder first, and then told to the yard, which may be away."""

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

_DISK_FULL_PATIENCE_S = 60.0


class Report:
    def __init__(self, run_id: str, folder: RunFolder, doorbell: str, attempt: int = 1) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._folder = folder
        self._doorbell = doorbell
        self._unwritten: list[bytes] = []

    def seen(self) -> set[str]:
        """The names of this attempt's events so far. A line that a crash cut short says nothing."""
        names = set()
        if self._folder.events.exists():
            for line in self._folder.events.read_bytes().splitlines():
                try:
                    said = json.loads(line)
                    if said.get("attempt", 1) >= self._attempt:
                        names.add(str(said["event"]))
                except (ValueError, KeyError, TypeError):
                    continue
        return names

    def script_started(self, pid: int) -> None:
        """A full disk must not keep the agent from its script: then this is written together with the end."""
        self._write({"event": "script_started", "at": clock.now(), "pid": pid}, patience_s=0.0)

    def tell_of_start(self) -> None:
        self._tell(0.2)

    def note(self, event: str, **facts: Any) -> None:
        """For the other nodes and for people; the yard is told when there is something that it acts upon."""
        self._write({"event": event, "at": clock.now(), **facts}, patience_s=1.0, is_durable=False)

    def stalled(self, ranks: dict[str, str]) -> None:
        self.note("stalled", ranks=ranks)
        self._tell(0.2)

    def script_ended(self, end: End) -> None:
        self._last_word({"event": "script_ended", "at": clock.now(), "end": to_json(end)})

    def launch_failed(self, end: End) -> None:
        self._last_word({"event": "launch_failed", "at": clock.now(), "end": to_json(end)})

    def _last_word(self, event: dict[str, Any]) -> None:
        self._write(event, patience_s=_DISK_FULL_PATIENCE_S)
        self._tell(1.0)

    def _write(self, event: dict[str, Any], *, patience_s: float, is_durable: bool = True) -> None:
        """Somebody may make room on a full disk; until then the agent keeps its word, and the run's lock."""
        self._unwritten.append(json.dumps({**event, "attempt": self._attempt}).encode() + b"\n")
        give_up = clock.monotonic() + patience_s
        while self._unwritten:
            try:
                self._append(self._unwritten[0], is_durable)
                del self._unwritten[0]
            except OSError:
                if clock.monotonic() >= give_up:
                    return
                time.sleep(0.2)

    def _append(self, line: bytes, is_durable: bool) -> None:
        file = os.open(self._folder.events, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line  # half a line is there: ours must not become its second half
            if os.write(file, line) != len(line):
                os.ftruncate(file, size)  # nobody else writes here, so half a line can be taken back
                raise OSError("the event was written in part")
            if is_durable:
                os.fsync(file)
        finally:
            os.close(file)

    def _tell(self, patience_s: float) -> None:
        if self._doorbell:
            notify(self._doorbell, self._run_id, patience_s)
