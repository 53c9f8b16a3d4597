"""``python -m runyard.environments.remote_builder FOLDER``: builds environments for a yard on another machine.

Requests and responses are lines of JSON on standard input and output:

    {"prepare": {"id": 7, "spec": …, …}, "uv": path}    {"abandon": 7}
    {"id": 7, "say": text}    {"id": 7, "answer": {"prepared": …, "mpirun": path}}
    {"id": 7, "error": {…}, "kind": name}

When the input ends, incomplete environments are removed.
"""

from __future__ import annotations

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

from runyard.environments.manager import EnvironmentManager, Prepared
from runyard.environments.prepared import ProgressCallback
from runyard.errors import EnvironmentException, RunyardException
from runyard.posix import file_lock
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.json import from_json, to_json

_SHUTDOWN_S = 20.0  # for canceled builds to end
_PIP_TIMEOUT_S = 300.0


def main(root: Path) -> None:
    builder = _Builder(root)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "abandon" in request:
            builder.cancel(int(request["abandon"]))
        else:
            builder.start(request["prepare"], str(request.get("uv") or ""))
    builder.close()
    os._exit(0)


class _Builder:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._managers: dict[str, EnvironmentManager] = {}  # by the path of their uv
        self._root_lock = _RootLock(root / ".lock")
        self._lock = threading.Lock()
        self._canceled: dict[int, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def start(self, request: dict[str, Any], uv: str) -> None:
        canceled = self._canceled[int(request["id"])] = threading.Event()
        thread = threading.Thread(target=self._handle, args=(request, uv, canceled), daemon=True)
        self._threads = [other for other in self._threads if other.is_alive()]
        self._threads.append(thread)
        thread.start()

    def cancel(self, request_id: int) -> None:
        self._canceled.setdefault(request_id, threading.Event()).set()

    def close(self) -> None:
        for canceled in list(self._canceled.values()):
            canceled.set()
        for thread in self._threads:
            thread.join(_SHUTDOWN_S)

    def _handle(self, request: dict[str, Any], uv: str, canceled: threading.Event) -> None:
        request_id = int(request["id"])

        def report(text: str) -> None:
            self._send({"id": request_id, "say": text})

        try:
            prepared = self._prepare(request, uv, canceled, report)
            self._send({"id": request_id, "answer": {"prepared": to_json(prepared), "mpirun": _mpirun(prepared)}})
        except RunyardException as error:
            fields = {"message": error.message, "hint": error.hint}
            self._send({"id": request_id, "error": fields, "kind": type(error).__name__})
        except (OSError, ValueError) as error:
            fields = {"message": f"{type(error).__name__}: {error}", "hint": ""}
            self._send({"id": request_id, "error": fields, "kind": "EnvironmentException"})
        finally:
            self._canceled.pop(request_id, None)

    def _prepare(
        self, request: dict[str, Any], uv: str, canceled: threading.Event, report: ProgressCallback
    ) -> Prepared:
        spec = from_json(EnvironmentSpec, request["spec"])
        if request["lends_python"] and spec.interpreter and not shutil.which(spec.interpreter):
            report(f"{spec.interpreter} does not exist on this machine: {sys.executable} is used")
            spec = replace(spec, interpreter=None)
        with self._root_lock.hold(report):
            uv = uv or self._install_uv(spec, report)
            with self._lock:
                if not self._managers:  # safe: no other process builds here while the root is locked
                    EnvironmentManager(self._root).clean_leftovers()
                manager = self._managers.setdefault(
                    uv, EnvironmentManager(self._root, environ={**os.environ, "RUNYARD_UV": uv})
                )
            return manager.prepare(
                spec,
                has_gpu=bool(request["has_gpu"]),
                report=report,
                canceled=canceled,
                run_folder=Path(request["run_folder"]),
                node_package=Path(request["kit"]),
                run_id=str(request["run_id"]),
            )

    def _install_uv(self, spec: EnvironmentSpec, report: ProgressCallback) -> str:
        """The path of a uv for this machine, if the yard's uv is for another platform."""
        path = shutil.which("uv")
        if path or spec.user_managed:
            return path or ""
        folder = self._root.parent / "uv"
        if not (folder / "bin" / "uv").exists():
            report("installing uv, which builds environments, with pip")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "uv"]
            process = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S)
            if process.returncode != 0:
                raise EnvironmentException(
                    f"cannot install uv on this machine: {process.stderr.strip()[-500:]}",
                    hint="install uv on that machine, so that it is on PATH",
                )
        return str(folder / "bin" / "uv")

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


class _RootLock:
    """A root is used by one process at a time; several yards that use this machine wait for each other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._users = 0
        self._descriptor = -1

    @contextmanager
    def hold(self, report: ProgressCallback) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._descriptor = self._acquire(report)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    os.close(self._descriptor)

    def _acquire(self, report: ProgressCallback) -> int:
        lock = file_lock.acquire(self._path)
        if lock is None:
            report("waiting for another yard that builds an environment on this machine")
            lock = file_lock.acquire(self._path, timeout_s=None)
        assert lock is not None
        return lock


def _mpirun(prepared: Prepared) -> str:
    """The path of mpirun: the environment's own Open MPI first, because its packages were built for it."""
    path = os.pathsep.join([*prepared.path_entries, os.environ.get("PATH", os.defpath)])
    return shutil.which("mpirun", path=path) or ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
