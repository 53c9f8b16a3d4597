"""Controls the supervisor of a service: through a file and a signal; a lock shows whether it is running."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import runyard
from runyard import clock
from runyard.agent.process.process_tree import stop_processes
from runyard.errors import WebserviceException
from runyard.launch.variables import ROLE, clean_environment
from runyard.posix import descriptor_limit, file_lock
from runyard.posix.atomic_write import replace_file, write_text
from runyard.spec.json import from_json, to_json
from runyard.spec.service import DesiredState, ServiceFolder

_PORTS = range(9100, 10_000)
_STOP_S = 10.0
_KEY_CHARACTERS = string.ascii_letters + string.digits


class SupervisorClient:
    """Controls one service's supervisor. Thread-safe."""

    def __init__(self, folder: ServiceFolder, node_package: Path | None = None) -> None:
        """``node_package`` is needed to start a supervisor, not to stop one."""
        self.folder = folder
        self._node_package = node_package
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None

    def desired_state(self) -> DesiredState | None:
        try:
            return from_json(DesiredState, json.loads(self.folder.desired_state.read_bytes()))
        except (OSError, ValueError):
            return None

    def status(self) -> dict[str, Any]:
        """The supervisor's status; empty without one that has written it, because the last status is then outdated."""
        pid = self._pid()
        if pid is None:
            return {}
        try:
            status = dict(json.loads(self.folder.status.read_bytes()))
        except (OSError, ValueError):
            return {}
        return status if status.get("pid") == pid else {}

    def store(self, state: DesiredState) -> DesiredState:
        """Store a desired state without notifying the supervisor."""
        before = self.desired_state()
        state = replace(state, generation=(before.generation if before else 0) + 1)
        with replace_file(self.folder.desired_state, durable=True) as draft:
            draft.touch(mode=0o600)
            draft.write_text(json.dumps(to_json(state)), encoding="utf-8")
        return state

    def apply(self, state: DesiredState) -> int:
        """Apply a desired state; the generation that the status reports once it is applied.

        Starts a supervisor if none is running. Existing keys are kept: those of ``state`` were read earlier, and one of
        them may have been replaced since.
        """
        with self._lock:
            before = self.desired_state()
            if before is not None and before.keys:
                state = replace(state, keys=before.keys)
            return self._apply(state)

    def change(self, update: Callable[[DesiredState], DesiredState]) -> int:
        with self._lock:
            before = self.desired_state()
            if before is None:
                raise WebserviceException(f"the service {self.folder.root.name} is not deployed yet")
            return self._apply(update(before))

    def ensure_running(self) -> bool:
        """Start a supervisor if the service should be running and has none; True if it was started."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._process = None
            state = self.desired_state()
            if state is None or not state.traffic or self._pid() is not None or self._process is not None:
                return False
            self._start()
            return True

    def is_running(self) -> bool:
        return self._pid() is not None

    def stop(self) -> None:
        """Remove the desired state and block until no process of the service is left."""
        with self._lock:
            self.folder.desired_state.unlink(missing_ok=True)  # first, so that the monitor does not start it again
            pid = self._pid()
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            if self._process is not None:  # one that has just been started does not hold the lock yet
                self._process.terminate()
            deadline = clock.monotonic() + _STOP_S
            while self._pid() is not None:
                if clock.monotonic() > deadline and pid is not None:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)
            if self._process is not None:
                try:
                    self._process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process = None
            stop_processes(process_tag(self.folder), 0.0)

    def _apply(self, state: DesiredState) -> int:
        state = self.store(state)
        pid = self._pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP)
                return state.generation
        # a starting supervisor reads the new state; a second one would leave the first untracked
        if self._process is None or self._process.poll() is not None:
            self._start()
        return state.generation

    def _pid(self) -> int | None:
        return file_lock.holder(self.folder.lock) or None  # 0: it has the lock, but has not written its id yet

    def _start(self) -> None:
        package = Path(runyard.__file__).parents[1]
        if self._node_package is not None:
            self._update_orders(self._node_package)
        file = os.open(self.folder.supervisor_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(file, "wb") as log:
            self._process = subprocess.Popen(
                # without `site`: it uses only the standard library and this package
                descriptor_limit.with_original_limit(
                    [sys.executable, "-S", "-m", "runyard.serving.supervisor", str(self.folder.root)]
                ),
                env={**clean_environment(os.environ), "PYTHONPATH": str(package), ROLE: "keeper"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the yard's terminal must not stop services
            )

    def _update_orders(self, node_package: Path) -> None:
        """Let workers use the code of this version: those of an earlier one do not understand this supervisor."""
        earlier = re.compile(re.escape(str(node_package.parent)) + r"/[0-9a-f]+")
        for file in self.folder.root.glob("versions/*/order.json"):
            text = file.read_text(encoding="utf-8")
            updated = earlier.sub(str(node_package), text)
            if updated != text:
                write_text(file, updated)


def process_tag(folder: ServiceFolder) -> str:
    """Identifies every process of the service, through an environment variable."""
    return f"service@{folder.root}"


def new_key() -> str:
    return "".join(secrets.choice(_KEY_CHARACTERS) for _ in range(32))


def free_port(host: str, requested: int, used: dict[int, str]) -> int:
    """The requested port if it is free, or any free port.

    Args:
        host: The address to listen on.
        requested: A port, or 0 for any.
        used: The ports of other services, with their names.
    """
    if requested:
        problem = f"used by the service {used[requested]!r}" if requested in used else _bind_error(host, requested)
        if problem:
            raise WebserviceException(
                f"cannot listen on port {requested} of {host}: {problem}",
                hint="choose another port, or omit it to get a free one",
            )
        return requested
    for port in _PORTS:
        if port not in used and not _bind_error(host, port):
            return port
    raise WebserviceException(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free", hint="specify one: port=…")


def _bind_error(host: str, port: int) -> str:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
