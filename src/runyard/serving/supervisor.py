"""``python -m runyard.serving.supervisor FOLDER``: keeps the workers of one service running, with or without a yard.

Reads the desired state from the service's folder at the start and on SIGHUP, establishes it, and writes its status. It
owns the listening sockets, so that workers can be replaced without refusing a connection. Standard library only: each
service has one supervisor for its whole life.
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

from runyard.posix import file_lock
from runyard.posix.atomic_write import write_text
from runyard.serving.workers import Version, WorkerSlot
from runyard.spec.json import from_json, to_json
from runyard.spec.service import DesiredState, ServiceFolder

_POLL_S = 1.0
_MAX_LOG_BYTES = 64 * 1024 * 1024
_BACKLOG = 2048
_LOCK_TIMEOUT_S = 5.0
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

    def run(self) -> None:
        wake, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_writer)
        signal.signal(signal.SIGHUP, self._on_reload)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        rotated_at = time.monotonic()
        while not self._stopping:
            if self._must_reload:
                self._must_reload = False
                self._reload()
            self._reap()
            self._reconcile()
            self._write_status()
            readers: list[Any] = [wake, *(slot.control for slot in self._slots() if slot.control is not None)]
            for ready in select.select(readers, [], [], self._next_timeout_s())[0]:
                if ready == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                else:
                    self._receive(ready)
            if time.monotonic() - rotated_at > _POLL_S * 10:
                rotated_at = time.monotonic()
                self._rotate_logs()
        for slot in self._slots():
            slot.kill()
        self._reap()

    def _on_reload(self, number: int, frame: Any) -> None:
        self._must_reload = True

    def _on_stop(self, number: int, frame: Any) -> None:
        self._stopping = True

    def _reload(self) -> None:
        try:
            desired = from_json(DesiredState, json.loads(self._folder.desired_state.read_bytes()))
        except (OSError, ValueError) as error:
            self._error = f"cannot read {self._folder.desired_state.name}: {error}"
            return
        before, self._desired, self._error = self._desired, desired, ""
        if before is None or (before.host, before.port) != (desired.host, desired.port) or self._listener is None:
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

    def _receive(self, control: Any) -> None:
        for version in self._versions.values():
            for slot in version.slots():
                if slot.control is control:
                    slot.receive()
                    if slot.failure:
                        version.fail(slot.failure)
                    return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for version in self._versions.values():
                version.handle_exit(pid, status)

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
    Supervisor(folder).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
