"""The worker processes of one version of a service: started, restarted with backoff, drained."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Optional

from runyard.agent.process.spawn import SpawnError, spawn
from runyard.launch.variables import clean_environment
from runyard.scoring.control import receive, send
from runyard.serving.held_connections import HeldConnection, HeldConnections
from runyard.spec.json import from_json, to_json
from runyard.spec.service import DesiredState, ServiceFolder, WorkerOrder

_FIRST_DELAY_S = 0.1
_MAX_DELAY_S = 30.0
_SEND_TIMEOUT_S = 1.0
_STABLE_S = 60.0  # a worker that lived this long did not crash because of its start


class WorkerSlot:
    """Holds one worker process at a time; after a crash, a new worker fills the same slot."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid: Optional[int] = None
        self.process_fd: Optional[int] = None  # of a worker that an earlier supervisor started: not a child
        self.control: Optional[socket.socket] = None
        self.connections = HeldConnections()
        self.state = "absent"  # starting, ready, serving, draining
        self.failure = ""
        self.restarts = 0
        self.not_before = 0.0
        self.started_at = self._attached_at = 0.0
        self.started_with: Any = None
        self._settings: Any = None
        self._sent_number = 0
        self._applied_number = 0

    @property
    def is_current(self) -> bool:
        """True if the worker serves with the latest settings."""
        return self.state == "serving" and self._applied_number == self._sent_number

    @property
    def lifetime_s(self) -> float:
        """Since it was started, or taken over from an earlier supervisor; unlike ``started_at``, not of the clock."""
        return time.monotonic() - self._attached_at

    def attach(self, pid: int, started_with: Any) -> None:
        self.pid, self.started_with = pid, started_with
        self.state, self.failure, self.started_at = "starting", "", time.time()
        self._attached_at = time.monotonic()
        self._settings, self._sent_number, self._applied_number = None, 0, 0

    def adopt(self, hello: dict[str, Any]) -> None:
        """Take a worker over that an earlier supervisor has started."""
        self.attach(int(hello["pid"]), hello["started_with"])
        self.process_fd = os.pidfd_open(int(hello["pid"]))
        self.state, self.started_at = str(hello["state"]), float(hello["started_at"])

    def connect(self, control: socket.socket) -> None:
        self.disconnect()
        self.control = control
        control.settimeout(_SEND_TIMEOUT_S)

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> bool:
        """True if the worker receives the message."""
        if self.control is None:
            return False
        try:
            send(self.control, message, descriptors)
        except OSError:  # the worker has just ended and is reaped soon
            return False
        return True

    def receive(self, *, all_messages: bool = False) -> None:
        """Process the next message, or all that have arrived."""
        while self.control is not None:
            try:
                message, descriptors = receive(self.control)
            except (BlockingIOError, TimeoutError):
                return
            if not message:
                self.disconnect()
            elif message.get("ready") and self.state == "starting":
                self.state = "ready"
            elif "failed" in message:
                self.failure = str(message["failed"])
            elif "applied" in message:
                self._applied_number = int(message["applied"])
            elif "open" in message:
                self.connections.open(message["open"], descriptors)
            elif "buffer" in message:
                self.connections.replace_buffer(message["buffer"], descriptors)
            elif "closed" in message:
                self.connections.close(message["closed"])
            if not all_messages:
                return

    def serve(self, settings: dict[str, Any]) -> None:
        if self.state == "ready" or (self.state == "serving" and settings != self._settings):
            self._sent_number += 1
            self.send({"go" if self.state == "ready" else "settings": settings, "number": self._sent_number})
            self.state, self._settings = "serving", settings

    def drain(self, within_s: float) -> None:
        if self.state in ("ready", "serving"):
            self.send({"drain": within_s})
            self.state = "draining"
        elif self.state == "starting":
            self.kill()

    def kill(self) -> None:
        if self.pid is None:
            return
        with suppress(ProcessLookupError):
            if self.process_fd is not None:  # the process id of a process that is not a child may be reused
                signal.pidfd_send_signal(self.process_fd, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)

    def handle_exit(self) -> list[HeldConnection]:
        """Forget the process; its connections."""
        if self.control is not None:
            self.control.setblocking(False)
            self.receive(all_messages=True)  # those that the worker sent before it ended
        self.disconnect()
        self.pid = None
        if self.process_fd is not None:
            os.close(self.process_fd)
            self.process_fd = None
        return self.connections.take_all()

    def disconnect(self) -> None:
        if self.control is not None:
            self.control.close()
            self.control = None


class Version:
    def __init__(self, folder: ServiceFolder, number: int, workers: int) -> None:
        self._folder, self.number = folder, number
        self._order = from_json(WorkerOrder, json.loads(folder.order(number).read_bytes()))
        self._slots = [WorkerSlot(n) for n in range(workers)]
        self._retired: list[WorkerSlot] = []
        self._listener: Optional[socket.socket] = None
        self._was_ready = False
        self._served_marker = folder.version(number) / "served"
        self._has_served = self._served_marker.exists()  # under an earlier supervisor
        self._next_slot = workers
        self.failure = ""

    @property
    def has_failed(self) -> bool:
        return bool(self.failure)

    @property
    def is_ready(self) -> bool:
        """Stays True after the first time: a crash is no reason to return traffic to an old version."""
        if not self._was_ready and self._slots:
            self._was_ready = all(slot.state in ("ready", "serving") for slot in self._slots)
            if self._was_ready and not self._has_served:
                with suppress(OSError):  # a full disk
                    self._served_marker.touch()
                self._has_served = True
        return self._was_ready and not self.failure

    @property
    def serves(self) -> bool:
        return all(slot.is_current for slot in self._slots)

    @property
    def has_ended(self) -> bool:
        return all(slot.pid is None for slot in self.slots())

    def slots(self) -> Iterator[WorkerSlot]:
        yield from self._slots
        yield from self._retired

    def resize(self, workers: int) -> None:
        while len(self._slots) > workers:
            self._retired.append(self._slots.pop())
        while len(self._slots) < workers:
            self._slots.append(WorkerSlot(self._next_slot))
            self._next_slot += 1

    def internal_listener(self) -> socket.socket:
        """Receives the share of the traffic that the primary version forwards."""
        if self._listener is None:
            path = self._folder.socket(self.number)
            path.unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self._listener.listen(512)
        return self._listener

    def start_missing(self, desired: DesiredState, listener: socket.socket, *, is_primary: bool, now: float) -> None:
        for n, slot in enumerate(self._slots):
            if slot.state == "serving" and slot.started_with != _start_settings(desired, listener, is_primary):
                # the primary version or a setting that is read only at the start has changed: replace the worker
                self._retired.append(slot)
                slot = self._slots[n] = WorkerSlot(self._next_slot)
                self._next_slot += 1
            if slot.pid is None and not self.failure and slot.not_before <= now:
                self._start(slot, desired, listener, is_primary)

    def serve(self, settings: dict[str, Any]) -> None:
        for slot in self._slots:
            slot.serve(settings)

    def drain(self, within_s: float) -> None:
        for slot in self.slots():
            slot.drain(within_s)

    def drain_retired(self, within_s: float) -> None:
        if self.serves:
            for slot in self._retired:
                slot.drain(within_s)
        self._retired = [slot for slot in self._retired if slot.pid is not None]

    def fail(self, reason: str) -> None:
        """Give up on a version that was never ready: its script or model cannot serve, and a retry would not help.

        A version that has served before is retried: after a reboot, something it needs may not be available yet.
        """
        if not self._has_served:
            self.failure = reason
            for slot in self.slots():
                slot.kill()

    def adopt(self, hello: dict[str, Any], control: socket.socket) -> None:
        """Take a worker over that an earlier supervisor has started."""
        number = int(hello["place"])
        self._next_slot = max(self._next_slot, number + 1)
        slot = WorkerSlot(number)
        slot.adopt(hello)
        slot.connect(control)
        index = next((n for n, other in enumerate(self._slots) if other.pid is None), None)
        if slot.state == "draining" or index is None:
            self._retired.append(slot)
        else:
            self._slots[index] = slot

    def adopt_listener(self, listener: socket.socket) -> None:
        if self._listener is None:
            self._listener = listener
        else:
            listener.close()

    def handle_exit(self, pid: int, status: Optional[int]) -> list[HeldConnection]:
        """The connections of the worker that has ended. ``status`` is unknown if another supervisor started it."""
        for slot in self.slots():
            if slot.pid != pid:
                continue
            connections = slot.handle_exit()
            if slot.state == "draining" or slot in self._retired:
                return connections
            slot.restarts = 0 if slot.lifetime_s > _STABLE_S else slot.restarts + 1
            slot.not_before = time.monotonic() + (0.0 if slot.restarts <= 1 else _delay_s(slot.restarts - 2))
            slot.state = "absent"
            if not self._was_ready:
                self.fail(slot.failure or f"the worker ended during startup: {_exit_text(status)}")
            return connections
        return []

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._folder.socket(self.number).unlink(missing_ok=True)

    def status(self) -> dict[str, Any]:
        visible = [slot for slot in self.slots() if slot.state != "absent" or slot in self._slots]
        return {
            "state": "failed" if self.failure else "ready" if self._was_ready else "starting",
            "error": self.failure,
            "workers": [
                {
                    "place": slot.number,
                    "pid": slot.pid,
                    "state": slot.state,
                    "is_current": slot.is_current,
                    "restarts": slot.restarts,
                    "started_at": slot.started_at,
                    "error": slot.failure,
                }
                for slot in visible
            ],
        }

    def _start(self, slot: WorkerSlot, desired: DesiredState, listener: socket.socket, is_primary: bool) -> None:
        started_with = _start_settings(desired, listener, is_primary)
        settings = {
            "folder": str(self._folder.root),
            "service": desired.name,
            "version": self.number,
            "place": slot.number,
            "workers": desired.workers,
            "auth": desired.auth_enabled,
            "batching": to_json(desired.batching) if desired.batching is not None else None,
            "listening": listener.fileno(),
            "started_with": started_with,
        }
        try:
            listener.set_inheritable(True)
            pid = spawn(
                (*self._order.argv, json.dumps(settings)),
                {**clean_environment(os.environ), **self._order.variables},
                cwd=str(self._folder.work(self.number)),
                log=str(self._folder.service_log),
            )
        except (SpawnError, OSError) as error:  # OSError: the machine cannot start another process
            slot.failure = str(error)
            self.fail(str(error))
            slot.restarts += 1
            slot.not_before = time.monotonic() + _delay_s(slot.restarts)
            return
        finally:
            listener.set_inheritable(False)
        slot.attach(pid, started_with)


def _start_settings(desired: DesiredState, listener: socket.socket, is_primary: bool) -> list[Any]:
    """Settings that a worker cannot change after its start, as JSON. Includes the address that it listens on."""
    batching = to_json(desired.batching) if desired.batching is not None else None
    address = address_of(listener, desired) if is_primary else ""
    return [is_primary, batching, desired.auth_enabled, address]


def address_of(listener: socket.socket, desired: DesiredState) -> str:
    return f"{desired.host}:{listener.getsockname()[1]}"


def _delay_s(restarts: int) -> float:
    # 2.0 ** 1024 overflows: a supervisor that retries for hours would crash
    return min(_FIRST_DELAY_S * 2.0 ** min(restarts, 20), _MAX_DELAY_S)


def _exit_text(status: Optional[int]) -> str:
    if status is None:
        return "unknown exit code"
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
