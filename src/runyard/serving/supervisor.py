"""``python -m runyard.serving.supervisor FOLDER``: keeps the workers of one service running, with or without a yard.

Reads the desired state from the service's folder at the start and on SIGHUP, establishes it, and writes its status. It
shares the listening sockets with the workers and has a duplicate of every connection, so that the death of no single
process refuses or closes one: connections of a worker that dies continue in another one, and workers outlive
the supervisor and connect to the next. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Optional

from runyard.posix import descriptor_limit, file_lock, procfs, unix_socket
from runyard.posix.atomic_write import write_text
from runyard.scoring.control import receive, send
from runyard.serving.held_connections import HeldConnection, Outcome
from runyard.serving.workers import Version, WorkerSlot, address_of
from runyard.spec.json import from_json, to_json
from runyard.spec.service import DesiredState, ServiceFolder

_POLL_S = 1.0
_MAX_LOG_BYTES = 64 * 1024 * 1024
_BACKLOG = 2048
_LOCK_TIMEOUT_S = 5.0
_ADOPT_S = 10.0  # for workers to connect: immediately, except in a scoring call that blocks all threads
_HANDOVER_S = 120.0  # for a worker to become ready for a connection
DRAIN_S = 60.0


class Supervisor:
    def __init__(self, folder: ServiceFolder) -> None:
        self._folder = folder
        self._desired: Optional[DesiredState] = None
        self._versions: dict[int, Version] = {}
        self._listener: Optional[socket.socket] = None
        self._address = ""
        self._error = ""
        self._stopping = False
        self._must_reload = True
        self._written_status: Any = None
        self._started_at = time.time()
        self._control: Optional[socket.socket] = None
        self._unnamed: list[socket.socket] = []  # connections of workers before their greeting
        self._waiting: list[tuple[float, HeldConnection]] = []  # connections without a worker, each with a deadline
        self._handover_number = 0

    def run(self) -> None:
        wake, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_writer)
        signal.signal(signal.SIGHUP, self._on_reload)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not self._folder.desired_state.exists():
            return  # a worker started this supervisor while the service was being deleted
        self._open_control()
        self._adopt_workers(wake)
        rotated_at = time.monotonic()
        while not self._stopping:
            if self._must_reload:
                self._must_reload = False
                self._reload()
            self._reap()
            self._reconcile()
            self._hand_over()
            self._write_status()
            self._wait(wake, self._next_timeout_s())
            if not self._folder.desired_state.exists():
                break  # the service was deleted
            if time.monotonic() - rotated_at > _POLL_S * 10:
                rotated_at = time.monotonic()
                self._rotate_logs()
        for slot in self._slots():
            slot.kill()
        self._reap()

    def _wait(self, wake: int, timeout_s: float) -> None:
        """Handle events of signals and workers; return after the first ones, or after the timeout."""
        assert self._control is not None
        slots = {slot.control.fileno(): slot for slot in self._slots() if slot.control is not None}
        ended = {slot.process_fd: slot for slot in self._slots() if slot.process_fd is not None}
        unnamed = {connection.fileno(): connection for connection in self._unnamed}
        poll = select.poll()  # not select(), which is limited to 1,024 descriptors
        for descriptor in (wake, self._control.fileno(), *slots, *ended, *unnamed):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(timeout_s * 1e3):
            if descriptor == wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            elif descriptor == self._control.fileno():
                self._unnamed.append(self._control.accept()[0])
            elif descriptor in unnamed:
                self._unnamed.remove(unnamed[descriptor])
                self._greet(unnamed[descriptor])
            elif descriptor in slots:
                self._receive(slots[descriptor])
            elif ended[descriptor].pid is not None:
                self._handle_exit(ended[descriptor].pid or 0, None)

    def _open_control(self) -> None:
        self._folder.control.unlink(missing_ok=True)  # of an earlier supervisor
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with unix_socket.short_path(self._folder.control) as path:
            self._control.bind(path)
        self._control.listen(_BACKLOG)

    def _adopt_workers(self, wake: int) -> None:
        """Wait for the workers of an earlier supervisor, which have the listening sockets; end those that are stuck."""
        expected = _living_workers(self._folder)
        deadline = time.monotonic() + _ADOPT_S
        self._reload(listen=False)
        while expected and time.monotonic() < deadline and not self._stopping:
            self._wait(wake, _POLL_S / 10)
            connected = {slot.pid for slot in self._slots() if slot.control is not None}
            expected = {pid for pid in expected - connected if procfs.start_ticks(pid) is not None}
        for pid in expected:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _greet(self, connection: socket.socket) -> None:
        """Assign a worker that has connected to its slot."""
        message, descriptors = receive(connection)
        hello = message.get("hello")
        if hello is None or len(descriptors) != 1:
            connection.close()
            return
        listener = socket.socket(fileno=descriptors[0])
        slot = next((slot for slot in self._slots() if slot.pid == hello["pid"]), None)
        if slot is not None:
            listener.close()
            slot.connect(connection)
        elif not self._adopt(hello, connection, listener):
            connection.close()
            listener.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(hello["pid"]), signal.SIGKILL)
            return
        variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        argv = [sys.executable, "-S", "-m", "runyard.serving.supervisor", str(self._folder.root)]
        with contextlib.suppress(OSError):
            send(connection, {"supervisor": {"argv": argv, "variables": variables}})

    def _adopt(self, hello: dict[str, Any], connection: socket.socket, listener: socket.socket) -> bool:
        number, desired = int(hello["version"]), self._desired
        version = self._versions.get(number)
        if version is None:
            try:
                version = self._versions[number] = Version(self._folder, number, 0)
            except (OSError, ValueError):
                return False
        try:
            version.adopt(hello, connection)
        except OSError:  # it has ended since
            return False
        if listener.family == socket.AF_UNIX:
            version.adopt_listener(listener)
        elif (
            desired is not None
            and self._listener is None
            and address_of(listener, desired) == hello["started_with"][-1] == f"{desired.host}:{desired.port}"
        ):
            self._listener, self._address = listener, hello["started_with"][-1]
        else:
            listener.close()
        return True

    def _on_reload(self, number: int, frame: Any) -> None:
        self._must_reload = True

    def _on_stop(self, number: int, frame: Any) -> None:
        self._stopping = True

    def _reload(self, *, listen: bool = True) -> None:
        try:
            desired = from_json(DesiredState, json.loads(self._folder.desired_state.read_bytes()))
        except (OSError, ValueError) as error:
            self._error = f"cannot read {self._folder.desired_state.name}: {error}"
            return
        self._desired, self._error = desired, ""
        if listen and (self._listener is None or self._address != f"{desired.host}:{desired.port}"):
            self._listen(desired)
        for number in map(int, desired.traffic):
            version = self._versions.get(number)
            if version is None or version.has_failed:
                try:
                    self._versions[number] = Version(self._folder, number, desired.workers)
                except (OSError, ValueError) as error:  # its files are missing: the other versions still serve
                    self._error = f"version {number} cannot be started: {error}"
        for version in self._versions.values():
            version.resize(desired.workers)

    def _listen(self, desired: DesiredState) -> None:
        listener = socket.socket(socket.AF_INET6 if ":" in desired.host else socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((desired.host, desired.port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            self._error = f"cannot listen on {desired.host}:{desired.port}: {error.strerror}"
            return
        if self._listener is not None:
            self._listener.close()
        self._listener, self._error = listener, ""
        self._address = f"{desired.host}:{listener.getsockname()[1]}"

    def _reconcile(self) -> None:
        desired = self._desired
        if desired is None or self._listener is None:
            if desired is not None and self._listener is None:
                self._listen(desired)  # the port may have become free
            return
        shares = {int(number): share for number, share in desired.traffic.items()}
        primary = max(shares, key=lambda number: shares[number], default=0)
        now = time.monotonic()
        for number, version in self._versions.items():
            if number in shares:
                listener = self._listener if number == primary else version.internal_listener()
                version.start_missing(desired, listener, is_primary=number == primary, now=now)
        are_ready = all(number in self._versions and self._versions[number].is_ready for number in shares)
        if not shares or not are_ready:
            return  # the current versions keep serving until all desired ones are ready
        settings = {
            "limits": to_json(desired.limits),
            "keys": list(desired.keys) if desired.auth_enabled else [],
            "shares": {str(number): share for number, share in shares.items()},
        }
        for number in shares:
            self._versions[number].serve(settings)
        if not all(self._versions[number].serves for number in shares):
            return  # some workers are still being replaced
        for number in [number for number in self._versions if number not in shares]:
            version = self._versions[number]
            version.drain(DRAIN_S)
            if version.has_ended:
                version.close()
                del self._versions[number]
        for version in self._versions.values():
            version.drain_retired(DRAIN_S)

    def _receive(self, slot: WorkerSlot) -> None:
        slot.receive()
        if slot.failure:
            for version in self._versions.values():
                if slot in version.slots():
                    version.fail(slot.failure)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._handle_exit(pid, status)

    def _handle_exit(self, pid: int, status: Optional[int]) -> None:
        """Collect the connections of a worker that has ended for another one."""
        retries = self._desired.limits.retries if self._desired is not None else 0
        deadline = time.monotonic() + _HANDOVER_S
        for version in self._versions.values():
            for held in version.handle_exit(pid, status):
                outcome = held.settle(retries)
                if outcome is Outcome.CONTINUE:
                    self._waiting.append((deadline, held))
                    continue
                if outcome is Outcome.GIVE_UP:
                    held.respond_with_failure()
                held.close()

    def _hand_over(self) -> None:
        """Pass connections without a worker to workers that serve."""
        if not self._waiting:
            return
        slots = [slot for slot in self._slots() if slot.state == "serving" and slot.started_with[0]]
        waiting, self._waiting = self._waiting, []
        for deadline, held in waiting:
            self._handover_number += 1
            for n in range(len(slots)):
                slot = slots[(self._handover_number + n) % len(slots)]
                if slot.send({"adopt": held.id}, (held.connection, held.buffer)):
                    slot.connections.add(held)
                    break
            else:
                if time.monotonic() < deadline:
                    self._waiting.append((deadline, held))
                else:
                    held.close()

    def _slots(self) -> list[WorkerSlot]:
        return [slot for version in self._versions.values() for slot in version.slots()]

    def _next_timeout_s(self) -> float:
        """A crashed worker restarts after a delay."""
        now = time.monotonic()
        soonest = min((slot.not_before for slot in self._slots() if slot.not_before > now), default=now + _POLL_S)
        return max(0.0, min(_POLL_S, soonest - now))

    def _rotate_logs(self) -> None:
        has_rotated = False
        for path in (self._folder.service_log, self._folder.request_log):
            with contextlib.suppress(OSError):
                if path.stat().st_size > _MAX_LOG_BYTES:
                    path.replace(path.with_name(f"{path.name}.1"))
                    has_rotated = True
        if has_rotated:
            for slot in self._slots():
                slot.send({"reopen": True})

    def _write_status(self) -> None:
        status = {
            "pid": os.getpid(),
            "began_at": self._started_at,
            "generation": self._desired.generation if self._desired is not None else 0,
            "address": self._address,
            "error": self._error,
            "versions": {str(number): version.status() for number, version in self._versions.items()},
        }
        if status == self._written_status:
            return
        try:
            write_text(self._folder.status, json.dumps(status))
        except OSError as error:
            # on a full disk, continue and write later: ending would stop all workers
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise  # the folder has been deleted, and with it the service
            return
        self._written_status = status


def main(root: str) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the handler is installed, SIGHUP would end the process
    folder = ServiceFolder(Path(root))
    os.umask(0o077)
    if file_lock.acquire(folder.lock, timeout_s=_LOCK_TIMEOUT_S) is None:
        return 0  # another supervisor is running
    descriptor_limit.raise_limit()  # two descriptors per client connection
    Supervisor(folder).run()
    return 0


def _living_workers(folder: ServiceFolder) -> set[int]:
    """Process ids of the workers that an earlier supervisor has left."""
    try:
        versions = json.loads(folder.status.read_bytes())["versions"].values()
        pids = {worker["pid"] for version in versions for worker in version["workers"] if worker["pid"] is not None}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    root = os.fsencode(folder.root)
    return {pid for pid in pids if procfs.start_ticks(pid) is not None and root in procfs.environment(pid)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
