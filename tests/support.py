"""Helpers for tests: home folders, process ids, and waiting for other processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from runyard import Run, ScriptRunConfig
from runyard.serving.supervisor_client import SupervisorClient
from runyard.snapshots.freeze import freeze
from runyard.snapshots.store import SnapshotStore
from runyard.spec.folder import HomeFolder
from runyard.spec.service import ServiceFolder
from runyard.yard.home_lock import HomeLock


@contextmanager
def a_home() -> Iterator[Path]:
    """A temporary home folder with a path short enough for a socket; stops the processes that were started in it."""
    folder = Path(tempfile.mkdtemp(prefix="ry-"))
    try:
        yield folder
    finally:
        stop_yard(folder)
        stop_runs(folder)
        stop_services(folder)
        shutil.rmtree(folder, ignore_errors=True)


def unlocked(home: Path) -> HomeLock:
    """The lock of a yard inside the test's own process: not held, because `a_home` stops the process that holds it."""
    path = HomeFolder(home).yard_lock
    return HomeLock(path, os.open(path, os.O_RDWR | os.O_CREAT))


def store_script(snapshots: SnapshotStore, name: str = "train.py") -> str:
    """Store the snapshot of an empty script and return its id."""
    with tempfile.TemporaryDirectory(prefix="ry-") as folder:
        (Path(folder) / "code").mkdir()
        (Path(folder) / "code" / name).touch()
        snapshot = freeze(
            Path(folder) / "code", index_folder=Path(folder) / "index", pack_to=Path(folder) / "code.pack"
        )
        return snapshots.add(snapshot.manifest.to_bytes(), snapshot.pack)


def stop_runs(home: Path) -> None:
    """Stop the runs of a failed test; they would outlive the yard."""
    for lock in [*home.glob("runs/*/agent.lock"), *home.glob("runs/*/nodes/*/agent.lock")]:
        pid = lock_holder(lock)
        if pid is not None:
            (lock.parent / "stop.json").write_text('{"reason": "canceled"}')
            os.kill(pid, signal.SIGTERM)
            eventually(lambda lock=lock: lock_holder(lock) is None, f"the agent of {lock.parent.name} ends", 30)


def stop_services(home: Path) -> None:
    """Stop services, which outlive the yard, too; their workers would start another supervisor."""
    for folder in home.glob("services/*"):
        SupervisorClient(ServiceFolder(folder)).stop()


def yard_pid(home: Path) -> int | None:
    """The process id of the yard of this home; None if it is not running."""
    return lock_holder(home / "yard.lock")


def lock_holder(path: Path) -> int | None:
    """The process id in a lock file; None if the lock is not held."""
    try:
        with open(path, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read() or 0) or None
    except FileNotFoundError:
        pass
    return None


def stop_yard(home: Path, number: int = signal.SIGTERM) -> None:
    pid = yard_pid(home)
    if pid is None:
        return
    os.kill(pid, number)
    eventually(lambda: yard_pid(home) is None, "the yard ends")


def eventually(condition: Callable[[], object], description: str, within_s: float = 60.0) -> None:
    """Wait for a condition that another process fulfills."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:.0f} s: {description}")
        time.sleep(0.01)


def holds_for(seconds: float, condition: Callable[[], object], description: str) -> None:
    """Check that a condition holds during this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), description
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def with_this_python(project: Path, script: str = "train.py", arguments: list[object] | None = None) -> ScriptRunConfig:
    """A run with the interpreter of the tests; no environment is built."""
    config = ScriptRunConfig(project, script=script, arguments=arguments or [])
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def run_view(run: Run) -> dict[str, Any]:
    """The run as the HTTP API returns it."""
    view: dict[str, Any] = run.experiment.workspace.connection.get(f"/api/runs/{run.id}")
    return view


def logged_errors(home: Path) -> list[str]:
    """Tracebacks and errors in a yard's log, with some context."""
    log = home / "yard.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    line_numbers = [
        n for n, line in enumerate(lines) if "Traceback" in line or " ERROR " in line or "Exception" in line
    ]
    return ["\n".join(lines[max(0, number - 2) : number + 30]) for number in line_numbers]


@contextmanager
def as_nobody(*paths: Path) -> Iterator[None]:
    """If the tests run as root, run the block as another user, who can access the folders of ``paths``."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        for folder in (path, *path.parents):
            if folder.owner() == "root" and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


class Python(NamedTuple):
    version: str
    path: str


def pythons() -> list[Python]:
    """The Python interpreters of this machine, oldest first."""
    interpreters = []
    for version in ("3.9", "3.10", "3.11", "3.12", "3.13"):
        candidates = [*sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)]
        candidates += [Path(path) for path in [shutil.which(f"python{version}")] if path]
        works = (p for p in candidates if subprocess.run([p, "-c", "pass"], capture_output=True).returncode == 0)
        path = next(works, None)
        if path is not None:
            interpreters.append(Python(version, str(path)))
    return interpreters or [Python(f"{sys.version_info.major}.{sys.version_info.minor}", sys.executable)]
