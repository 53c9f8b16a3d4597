"""The workers of a version: started, started again with patience, drained."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Optional

from runyard.agent.process.spawn import CannotStart, start
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceFolder, Wanted, WorkerOrder

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 30.0
_LIVED_S = 60.0  # whoever lived that long has not crashed because it started


class Place:
    """One worker after another: the next one takes the place of one that crashed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid: Optional[int] = None
        self.control: Optional[socket.socket] = None
        self.state = "absent"  # starting, ready, serving, draining
        self.failure = ""
        self.restarts = 0
        self.not_before = 0.0
        self.started_at = 0.0
        self.started_with: Any = None
        self._told: Any = None
        self._number = 0
        self._applied = 0
        self._heard = b""

    @property
    def is_current(self) -> bool:
        """It answers as it was last told to."""
        return self.state == "serving" and self._applied == self._number

    def begin(self, pid: int, control: socket.socket, started_with: Any) -> None:
        self.pid, self.control, self.started_with = pid, control, started_with
        self.state, self.failure, self.started_at = "starting", "", time.time()
        self._told, self._heard, self._number, self._applied = None, b"", 0, 0

    def say(self, word: dict[str, Any]) -> None:
        if self.control is not None:
            with suppress(OSError):  # it is about to be reaped
                self.control.sendall(json.dumps(word).encode() + b"\n")

    def hear(self) -> None:
        assert self.control is not None
        try:
            data = self.control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.hang_up()
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if word.get("ready"):
                self.state = "ready"
            elif "failed" in word:
                self.failure = str(word["failed"])
            elif "applied" in word:
                self._applied = int(word["applied"])

    def go(self, said: dict[str, Any]) -> None:
        if self.state == "ready" or (self.state == "serving" and said != self._told):
            self._number += 1
            self.say({"go" if self.state == "ready" else "settings": said, "number": self._number})
            self.state, self._told = "serving", said

    def drain(self, within_s: float) -> None:
        if self.state in ("ready", "serving"):
            self.say({"drain": within_s})
            self.state = "draining"
        elif self.state == "starting":
            self.kill()

    def kill(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def hang_up(self) -> None:
        if self.control is not None:
            self.control.close()
            self.control = None


class Version:
    def __init__(self, folder: ServiceFolder, number: int, workers: int) -> None:
        self._folder, self.number = folder, number
        self._order = from_json(WorkerOrder, json.loads(folder.order(number).read_bytes()))
        self._places = [Place(n) for n in range(workers)]
        self._leaving: list[Place] = []
        self._socket: Optional[socket.socket] = None
        self._was_ready = False
        self._mark = folder.version(number) / "served"
        self._has_served = self._mark.exists()  # under a keeper before this one
        self._next_place = workers
        self.failure = ""

    @property
    def has_failed(self) -> bool:
        return bool(self.failure)

    @property
    def is_ready(self) -> bool:
        """Once it was, it stays so: a crash is no reason to give its share to an old version."""
        if not self._was_ready and self._places:
            self._was_ready = all(place.state in ("ready", "serving") for place in self._places)
            if self._was_ready and not self._has_served:
                with suppress(OSError):  # a full disk
                    self._mark.touch()
                self._has_served = True
        return self._was_ready and not self.failure

    @property
    def serves(self) -> bool:
        return all(place.is_current for place in self._places)

    @property
    def is_gone(self) -> bool:
        return all(place.pid is None for place in self.everybody())

    def everybody(self) -> Iterator[Place]:
        yield from self._places
        yield from self._leaving

    def resize(self, workers: int) -> None:
        while len(self._places) > workers:
            self._leaving.append(self._places.pop())
        while len(self._places) < workers:
            self._places.append(Place(self._next_place))
            self._next_place += 1

    def own_socket(self) -> socket.socket:
        """For the share that another version passes on."""
        if self._socket is None:
            path = self._folder.socket(self.number)
            path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(str(path))
            self._socket.listen(512)
        return self._socket

    def start_missing(self, wanted: Wanted, listening: socket.socket, *, is_first: bool, now: float) -> None:
        for n, place in enumerate(self._places):
            if place.state == "serving" and place.started_with != _start_of(wanted, listening, is_first):
                # the version that is called has changed, or what only a start can: a new worker takes its place
                self._leaving.append(place)
                place = self._places[n] = Place(self._next_place)
                self._next_place += 1
            if place.pid is None and not self.failure and place.not_before <= now:
                self._start(place, wanted, listening, is_first)

    def go(self, said: dict[str, Any]) -> None:
        for place in self._places:
            place.go(said)

    def drain(self, within_s: float) -> None:
        for place in self.everybody():
            place.drain(within_s)

    def drain_leaving(self, within_s: float) -> None:
        if self.serves:
            for place in self._leaving:
                place.drain(within_s)
        self._leaving = [place for place in self._leaving if place.pid is not None]

    def failed(self, why: str) -> None:
        """Before it was ever ready: its script or its model cannot serve, and trying again would change nothing.

        One that has served before is tried again: what it needs may not be there yet, after the machine has started.
        """
        if not self._has_served:
            self.failure = why
            for place in self.everybody():
                place.kill()

    def ended(self, pid: int, status: int) -> None:
        for place in self.everybody():
            if place.pid != pid:
                continue
            if place.control is not None and not place.failure:
                self._last_words(place)
            place.hang_up()
            place.pid = None
            if place.state == "draining" or place in self._leaving:
                return
            lived_s = time.time() - place.started_at
            place.restarts = 0 if lived_s > _LIVED_S else place.restarts + 1
            place.not_before = time.monotonic() + (0.0 if place.restarts <= 1 else _wait_s(place.restarts - 2))
            place.state = "absent"
            if not self._was_ready:
                self.failed(place.failure or f"the worker ended while it started: {_how(status)}")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._folder.socket(self.number).unlink(missing_ok=True)

    def told(self) -> dict[str, Any]:
        shown = [place for place in self.everybody() if place.state != "absent" or place in self._places]
        return {
            "state": "failed" if self.failure else "ready" if self._was_ready else "starting",
            "error": self.failure,
            "workers": [
                {
                    "place": place.number,
                    "pid": place.pid,
                    "state": place.state,
                    "is_current": place.is_current,
                    "restarts": place.restarts,
                    "started_at": place.started_at,
                    "error": place.failure,
                }
                for place in shown
            ],
        }

    def _last_words(self, place: Place) -> None:
        """What it said before it ended may still be on its way."""
        assert place.control is not None
        place.control.setblocking(False)
        place.hear()

    def _start(self, place: Place, wanted: Wanted, listening: socket.socket, is_first: bool) -> None:
        ours, theirs = socket.socketpair()
        settings = {
            "folder": str(self._folder.root),
            "service": wanted.name,
            "version": self.number,
            "place": place.number,
            "workers": wanted.workers,
            "auth": wanted.auth_enabled,
            "batching": to_json(wanted.batching) if wanted.batching is not None else None,
            "control": theirs.fileno(),
            "listening": listening.fileno(),
        }
        try:
            for one in (theirs, listening):
                one.set_inheritable(True)
            pid = start(
                (*self._order.argv, json.dumps(settings)),
                self._order.variables,
                cwd=str(self._folder.work(self.number)),
                log=str(self._folder.service_log),
            )
        except (CannotStart, OSError) as error:  # OSError: the machine has no room for another process
            ours.close()
            place.failure = str(error)
            self.failed(str(error))
            place.restarts += 1
            place.not_before = time.monotonic() + _wait_s(place.restarts)
            return
        finally:
            listening.set_inheritable(False)
            theirs.close()
        place.begin(pid, ours, _start_of(wanted, listening, is_first))


def _start_of(wanted: Wanted, listening: socket.socket, is_first: bool) -> tuple[Any, ...]:
    """What a worker keeps from its start on. The socket too: one of the old port would never hear of the new one."""
    return is_first, wanted.batching, wanted.auth_enabled, listening


def _wait_s(restarts: int) -> float:
    # 2 ** 1024 is no number for a clock any more: a keeper that tried for hours would end by it
    return min(_FIRST_WAIT_S * 2.0 ** min(restarts, 20), _LONGEST_WAIT_S)


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
