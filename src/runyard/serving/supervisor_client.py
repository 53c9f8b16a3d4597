"""The yard's end of a keeper: told by a file and a signal, found by its lock, and nobody's child for long."""

from __future__ import annotations

import fcntl
import json
import os
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
from runyard.agent.process.process_tree import stop_everything
from runyard.errors import WebserviceException
from runyard.launch.variables import ROLE, clean
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceFolder, Wanted

_PORTS = range(9100, 10_000)
_STOP_S = 10.0
_KEY_LETTERS = string.ascii_letters + string.digits


class Keeping:
    """One service's. Safe for threads."""

    def __init__(self, folder: ServiceFolder) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None

    def wanted(self) -> Wanted | None:
        try:
            return from_json(Wanted, json.loads(self.folder.wanted.read_bytes()))
        except (OSError, ValueError):
            return None

    def found(self) -> dict[str, Any]:
        """Nothing, when there is no keeper: what it wrote last is true no more."""
        if self._holder() is None:
            return {}
        try:
            return dict(json.loads(self.folder.found.read_bytes()))
        except (OSError, ValueError):
            return {}

    def keep(self, wanted: Wanted) -> Wanted:
        """Written down, and told to nobody."""
        before = self.wanted()
        wanted = replace(wanted, generation=(before.generation if before else 0) + 1)
        draft = self.folder.wanted.with_name("wanted.json.draft")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            json.dump(to_json(wanted), out)
            out.flush()
            os.fsync(out.fileno())  # the machine may go down with a service just changed
        draft.replace(self.folder.wanted)
        return wanted

    def want(self, wanted: Wanted) -> int:
        """The generation under which the keeper will say that it has seen it. A keeper is started where none is.

        Keys that are there stay: those of ``wanted`` were read a while ago, and one of them may have been replaced.
        """
        with self._lock:
            before = self.wanted()
            if before is not None and before.keys:
                wanted = replace(wanted, keys=before.keys)
            return self._want(wanted)

    def change(self, how: Callable[[Wanted], Wanted]) -> int:
        with self._lock:
            before = self.wanted()
            if before is None:
                raise WebserviceException(f"the service {self.folder.root.name} is not deployed yet")
            return self._want(how(before))

    def look_after(self) -> bool:
        """Starts a keeper where one should be and none is; True when it had to."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._process = None
            wanted = self.wanted()
            if wanted is None or not wanted.traffic or self._holder() is not None or self._process is not None:
                return False
            self._start()
            return True

    def is_kept(self) -> bool:
        return self._holder() is not None

    def stop(self) -> None:
        """Blocks until nothing of the service runs. Nothing is wanted from then on."""
        with self._lock:
            self.folder.wanted.unlink(missing_ok=True)  # first: whoever looks after keepers starts none any more
            pid = self._holder()
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            if self._process is not None:  # one that has just started has no lock yet, and would be found by nobody
                self._process.terminate()
            deadline = clock.monotonic() + _STOP_S
            while self._holder() is not None:
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
            stop_everything(tag_of(self.folder), 0.0)

    def _want(self, wanted: Wanted) -> int:
        wanted = self.keep(wanted)
        pid = self._holder()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP)
                return wanted.generation
        # one that is on its way will read this: of two, the first would be forgotten, and never stopped
        if self._process is None or self._process.poll() is not None:
            self._start()
        return wanted.generation

    def _holder(self) -> int | None:
        """A lock that cannot be shared is held by a keeper; one that can be is given back within microseconds."""
        try:
            lock = os.open(self.folder.lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.read(lock, 32).strip()
            return int(text) if text.isdigit() else None
        finally:
            os.close(lock)
        return None

    def _start(self) -> None:
        package = Path(runyard.__file__).parents[1]
        file = os.open(self.folder.keeper_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.folder.found.unlink(missing_ok=True)  # of a keeper that is gone
        with os.fdopen(file, "wb") as log:
            self._process = subprocess.Popen(
                # without `site`: the standard library and our own package are all that it uses
                [sys.executable, "-S", "-m", "runyard.serving.supervisor", str(self.folder.root)],
                env={**clean(os.environ), "PYTHONPATH": str(package), ROLE: "keeper"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C in the yard's terminal is not for services
            )


def tag_of(folder: ServiceFolder) -> str:
    """Carried by every process of the service."""
    return f"service@{folder.root}"


def new_key() -> str:
    return "".join(secrets.choice(_KEY_LETTERS) for _ in range(32))


def free_port(host: str, asked: int, taken: dict[int, str]) -> int:
    """The port that was asked for if it is free, or any free one. ``taken``: port -> the service that has it."""
    if asked:
        if asked in taken:
            raise WebserviceException(
                f"port {asked} is taken by the service {taken[asked]!r}",
                hint="choose another port, or leave it out: a free one is found",
            )
        why = _why_not(host, asked)
        if why:
            raise WebserviceException(
                f"port {asked} of {host} cannot be listened at: {why}",
                hint="choose another port, or leave it out: a free one is found",
            )
        return asked
    for port in _PORTS:
        if port not in taken and not _why_not(host, port):
            return port
    raise WebserviceException(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free", hint="name one: port=…")


def _why_not(host: str, port: int) -> str:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
