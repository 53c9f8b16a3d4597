"""``python -m runyard.environments.remote_builder FOLDER``: environments for somebody on another machine.

Requests and answers are lines of JSON, on standard input and output:

    {"prepare": {"id": 7, "spec": …, …}, "uv": path}    {"abandon": 7}
    {"id": 7, "say": text}    {"id": 7, "answer": {"prepared": …, "mpirun": path}}
    {"id": 7, "error": {…}, "kind": name}

When the input ends, whatever is half-built is taken away.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.environments.manager import EnvironmentDepot, Prepared
from runyard.environments.prepared import Say
from runyard.errors import EnvironmentException, RunyardException
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.json import from_json, to_json

_GIVE_UP_S = 20.0  # for builders to end, once nobody wants what they build
_PIP_S = 300.0


def main(root: Path) -> None:
    builder = _Builder(root)
    for line in sys.stdin.buffer:
        said = json.loads(line)
        if "abandon" in said:
            builder.abandon(int(said["abandon"]))
        else:
            builder.begin(said["prepare"], str(said.get("uv") or ""))
    builder.close()
    os._exit(0)


class _Builder:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._depots: dict[str, EnvironmentDepot] = {}  # by the uv that they use
        self._own = _Own(root / ".lock")
        self._lock = threading.Lock()
        self._abandoned: dict[int, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def begin(self, request: dict[str, Any], uv: str) -> None:
        abandoned = self._abandoned[int(request["id"])] = threading.Event()
        thread = threading.Thread(target=self._prepare, args=(request, uv, abandoned), daemon=True)
        self._threads = [other for other in self._threads if other.is_alive()]
        self._threads.append(thread)
        thread.start()

    def abandon(self, number: int) -> None:
        self._abandoned.setdefault(number, threading.Event()).set()

    def close(self) -> None:
        for abandoned in list(self._abandoned.values()):
            abandoned.set()
        for thread in self._threads:
            thread.join(_GIVE_UP_S)

    def _prepare(self, request: dict[str, Any], uv: str, abandoned: threading.Event) -> None:
        number = int(request["id"])

        def say(text: str) -> None:
            self._tell({"id": number, "say": text})

        try:
            prepared = self._prepared(request, uv, abandoned, say)
            self._tell({"id": number, "answer": {"prepared": to_json(prepared), "mpirun": _mpirun(prepared)}})
        except RunyardException as error:
            said = {"message": error.message, "hint": error.hint}
            self._tell({"id": number, "error": said, "kind": type(error).__name__})
        except (OSError, ValueError) as error:
            said = {"message": f"{type(error).__name__}: {error}", "hint": ""}
            self._tell({"id": number, "error": said, "kind": "EnvironmentException"})
        finally:
            self._abandoned.pop(number, None)

    def _prepared(self, request: dict[str, Any], uv: str, abandoned: threading.Event, say: Say) -> Prepared:
        spec = from_json(EnvironmentSpec, request["spec"])
        if request["lends_python"] and spec.interpreter and not shutil.which(spec.interpreter):
            say(f"{spec.interpreter} is not on this machine: {sys.executable} is used")
            spec = replace(spec, interpreter=None)
        with self._own.held(say):
            uv = uv or self._uv_of_this_machine(spec, say)
            with self._lock:
                if not self._depots:
                    self._clean_leftovers()
                depot = self._depots.setdefault(
                    uv, EnvironmentDepot(self._root, environ={**os.environ, "RUNYARD_UV": uv})
                )
            return depot.prepare(
                spec,
                has_gpu=bool(request["has_gpu"]),
                say=say,
                abandoned=abandoned,
                run_folder=Path(request["run_folder"]),
                kit=Path(request["kit"]),
                run_id=str(request["run_id"]),
            )

    def _clean_leftovers(self) -> None:
        """Of a builder that was killed with its machine. Nobody else builds now: the folder is ours."""
        EnvironmentDepot(self._root).clean_leftovers()

    def _uv_of_this_machine(self, spec: EnvironmentSpec, say: Say) -> str:
        """The yard's is made for another kind of machine."""
        found = shutil.which("uv")
        if found or spec.user_managed:
            return found or ""
        place = self._root.parent / "uv"
        if not (place / "bin" / "uv").exists():
            say("getting uv, which builds environments, by this machine's own pip")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), "uv"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_S)
            if done.returncode != 0:
                raise EnvironmentException(
                    f"uv could not be installed here: {done.stderr.strip()[-500:]}",
                    hint="install uv on that machine, so that it is on PATH",
                )
        return str(place / "bin" / "uv")

    def _tell(self, said: dict[str, Any]) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


class _Own:
    """A depot is one process's at a time; yards that share a machine take turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._users = 0
        self._file = -1

    @contextmanager
    def held(self, say: Say) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._file = self._taken(say)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    os.close(self._file)

    def _taken(self, say: Say) -> int:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another yard, which builds an environment on this machine")
            fcntl.flock(file, fcntl.LOCK_EX)
        return file


def _mpirun(prepared: Prepared) -> str:
    """The environment's own Open MPI first: it is what its packages were built for."""
    path = os.pathsep.join([*prepared.path_entries, os.environ.get("PATH", os.defpath)])
    return shutil.which("mpirun", path=path) or ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
