"""A temporary folder with a separate yard, on the same disk as uv's cache."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runyard import Experiment, Run, ScriptRunConfig, Workspace
from runyard.client.connection import Connection
from runyard.serving.supervisor_client import SupervisorClient
from runyard.spec.service import ServiceFolder

_STABLE_AFTER_S = 2.2  # recently edited files are read again at every submission, by design


@dataclass(frozen=True)
class Sandbox:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "yard"

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def project(self, name: str, **scripts: str) -> Path:
        """Create a folder with these scripts, and wait until their stat is sufficient to detect changes."""
        folder = self.folder(name)
        for script, text in scripts.items():
            (folder / f"{script}.py").write_text(text, encoding="utf-8")
        time.sleep(_STABLE_AFTER_S)
        return folder

    def experiment(self, name: str) -> Experiment:
        return Experiment(Workspace(), name)


def cache() -> Path:
    """Return the folder for installed peers. Its name is short, because socket paths have a limited length."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runyard-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def new_sandbox() -> Iterator[Sandbox]:
    root = Path(tempfile.mkdtemp(prefix="at-", dir=cache()))
    sandbox = Sandbox(root)
    before = os.environ.get("RUNYARD_HOME")
    os.environ["RUNYARD_HOME"] = str(sandbox.home)
    # building a Horovod wheel takes minutes: share it between all benchmarks and tests on this machine
    os.environ.setdefault("RUNYARD_WHEEL_CACHE", str(cache().parent / "runyard" / "wheels"))
    try:
        yield sandbox
    finally:
        stop_yard(sandbox.home)
        for service in sandbox.home.glob("services/*"):  # services of a failed benchmark outlive their yard
            SupervisorClient(ServiceFolder(service)).stop()
        if before is None:
            del os.environ["RUNYARD_HOME"]
        else:
            os.environ["RUNYARD_HOME"] = before
        shutil.rmtree(root, ignore_errors=True)


def stop_yard(home: Path) -> None:
    connection = Connection(home)
    if connection.is_running():
        os.kill(connection.get("/api/health")["pid"], signal.SIGTERM)
        while connection.is_running():
            time.sleep(0.01)


def script_config(folder: Path, script: str, *arguments: object) -> ScriptRunConfig:
    """Return a configuration that runs the script with the Python of the benchmark."""
    config = ScriptRunConfig(str(folder), script=script, arguments=[str(argument) for argument in arguments])
    config.run_config.environment.python.user_managed_dependencies = True
    config.run_config.environment.python.interpreter_path = sys.executable
    return config


def wait_for(run: Run) -> Run:
    run.wait_for_completion()
    return run
