"""Where the bench works: a folder and a yard of its own, on the disk of uv's cache, and gone afterwards."""

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
from runyard.serving.supervisor_client import Keeping
from runyard.spec.service import ServiceFolder

_SETTLED_S = 2.2  # a file that was edited just now is read again at every submit, by design


@dataclass(frozen=True)
class Place:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "yard"

    def folder(self, name: str) -> Path:
        made = self.root / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def project(self, name: str, **scripts: str) -> Path:
        """A folder with these scripts, old enough to be recognised by its stat."""
        folder = self.folder(name)
        for script, text in scripts.items():
            (folder / f"{script}.py").write_text(text, encoding="utf-8")
        time.sleep(_SETTLED_S)
        return folder

    def experiment(self, name: str) -> Experiment:
        return Experiment(Workspace(), name)


def cache() -> Path:
    """Peers are kept here between benches; the name is short because a socket's path must be."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runyard-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def a_place() -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="at-", dir=cache()))
    place = Place(root)
    before = os.environ.get("RUNYARD_HOME")
    os.environ["RUNYARD_HOME"] = str(place.home)
    # a wheel of Horovod takes minutes to build: once for all benches and tests of this machine
    os.environ.setdefault("RUNYARD_WHEEL_CACHE", str(cache().parent / "runyard" / "wheels"))
    try:
        yield place
    finally:
        stop_yard(place.home)
        for service in place.home.glob("services/*"):  # of a row that failed: services outlive their yard
            Keeping(ServiceFolder(service)).stop()
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


def as_it_is(folder: Path, script: str, *arguments: object) -> ScriptRunConfig:
    """The script with the bench's own Python."""
    config = ScriptRunConfig(str(folder), script=script, arguments=[str(one) for one in arguments])
    config.run_config.environment.python.user_managed_dependencies = True
    config.run_config.environment.python.interpreter_path = sys.executable
    return config


def to_the_end(run: Run) -> Run:
    run.wait_for_completion()
    return run
