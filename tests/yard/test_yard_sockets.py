"""The yard's sockets and its lock when their files are removed, and stopping it without them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from runyard.client import yard_process
from runyard.client.connection import Connection
from runyard.client.yard_process import find_yard
from runyard.posix import file_lock, unix_socket
from support import eventually, is_alive, with_this_python, yard_pid

pytestmark = pytest.mark.real


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "runyard", *words], capture_output=True, text=True, timeout=120)


def test_a_removed_socket_is_restored(home: Path, workspace: Workspace) -> None:
    pid = workspace.connection.get("/api/health")["pid"]
    for content in (None, "not a socket"):
        (home / "yard.sock").unlink()
        if content is not None:
            (home / "yard.sock").write_text(content)
        eventually(lambda: unix_socket.is_open(home / "yard.sock"), "the yard listens again")
        assert Connection(home).get("/api/health")["pid"] == pid
    assert (home / "yard.sock").stat().st_mode & 0o777 == 0o600
    assert workspace.connection.get("/api/health")["pid"] == pid  # connections that were open continue


def test_a_client_waits_for_a_removed_socket(home: Path, workspace: Workspace) -> None:
    pid = workspace.connection.get("/api/health")["pid"]
    (home / "yard.sock").unlink()
    assert Connection(home).get("/api/health")["pid"] == pid


def test_the_socket_of_notifications_is_restored(home: Path, experiment: Experiment, project) -> None:
    experiment.workspace.connection.get("/api/health")
    (home / "bell.sock").unlink()
    eventually(lambda: unix_socket.is_open(home / "bell.sock"), "the yard listens for notifications again")
    run = experiment.submit(with_this_python(project(train="print('on')")))
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_yard_whose_lock_was_removed_stays_the_only_one(home: Path, workspace: Workspace) -> None:
    pid = workspace.connection.get("/api/health")["pid"]
    (home / "yard.lock").unlink()
    (home / "yard.sock").unlink()
    eventually(lambda: find_yard(home) == pid, "the yard locks its home again")
    assert Connection(home).get("/api/health")["pid"] == pid


def test_a_yard_closes_if_another_has_taken_over_its_home(home: Path, workspace: Workspace) -> None:
    pid = workspace.connection.get("/api/health")["pid"]
    lock = home / "yard.lock"
    lock.unlink()
    descriptor = file_lock.acquire(lock)
    (home / "yard.sock").unlink()
    eventually(lambda: not is_alive(pid), "the first yard closes")
    assert descriptor is not None
    os.close(descriptor)
    assert Connection(home).get("/api/health")["pid"] != pid


def test_the_yard_is_stopped_without_its_socket(home: Path, workspace: Workspace) -> None:
    pid = workspace.connection.get("/api/health")["pid"]
    (home / "yard.sock").unlink()
    result = command("yard", "stop")
    assert result.returncode == 0, result.stderr
    assert not is_alive(pid)
    assert yard_pid(home) is None
    assert command("yard", "stop").returncode == 0  # nothing is running


def test_a_process_that_only_has_the_id_of_a_yard_is_not_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yard_process, "_STARTING_TIMEOUT_S", 0.1)
    lock = file_lock.acquire(home / "yard.lock")
    assert lock is not None
    with subprocess.Popen(["sleep", "60"]) as bystander:
        os.pwrite(lock, f"{bystander.pid}\n".encode(), 0)
        assert yard_process.stop_yard(home) is None
        assert bystander.poll() is None
        bystander.kill()
    os.close(lock)


def test_a_run_has_the_users_limit_of_open_files(home: Path, experiment: Experiment, project) -> None:
    script = "import resource\nprint('limits', resource.getrlimit(resource.RLIMIT_NOFILE))"
    submit = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_NOFILE, (700, 4000))\n"
        "from runyard import Workspace\nprint(Workspace().connection.get('/api/health')['pid'])"
    )
    pid = subprocess.check_output([sys.executable, "-c", submit], text=True).strip()
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max open files +4000 +4000", limits)
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    logs = run.get_details_with_logs()["logFiles"]
    assert "limits (700, 4000)" in logs["azureml-logs/70_driver_log.txt"]
