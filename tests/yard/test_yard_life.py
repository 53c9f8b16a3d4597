"""The yard as a process: start, idle exit, kill and recovery."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runyard import Experiment, ScriptRunConfig, Workspace
from runyard.errors import HomeUnusable, RunNotFound, StoreCorrupted
from support import eventually, is_alive, logged_errors, stop_yard, yard_pid

SLOW = """
import os, sys, time
from runyard import Run
run = Run.get_context()
for i in range(1000):
    run.log('i', float(i))
    print(i)
    if os.path.exists(sys.argv[1]):
        break
    time.sleep(0.02)
open('outputs/done.txt', 'w').write('done')
"""


def local_config(project: Path, script: str = "train.py", arguments: list[str] | None = None) -> ScriptRunConfig:
    """A run with the interpreter of the tests."""
    config = ScriptRunConfig(project, script=script, arguments=arguments or [])
    config.run_config.environment.python.user_managed_dependencies = True
    return config


def test_twenty_concurrent_clients_start_one_yard(home: Path) -> None:
    code = "from runyard import Workspace; print(Workspace().connection.get('/api/health')['pid'])"
    clients = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(20)
    ]
    outputs = [client.communicate(timeout=120) for client in clients]
    assert {err for _, err in outputs} == {""}
    assert {out.strip() for out, _ in outputs} == {str(yard_pid(home))}


def test_the_socket_and_the_home_are_private(workspace: Workspace, home: Path) -> None:
    workspace.connection.get("/api/health")
    assert stat.S_IMODE((home / "yard.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_an_idle_yard_exits_and_is_started_again(
    home: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_IDLE_S", "0.3")
    first = workspace.connection.get("/api/health")["pid"]
    eventually(lambda: yard_pid(home) is None, "the idle yard ends")
    assert not (home / "yard.sock").exists()
    assert workspace.connection.get("/api/health")["pid"] != first


def test_a_yard_does_not_exit_while_a_run_is_active(
    home: Path, experiment: Experiment, project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_IDLE_S", "1.5")  # long enough for a slow client between two of its requests
    stop = tmp_path / "stop"
    run = experiment.submit(local_config(project(train=SLOW), arguments=[str(stop)]))
    eventually(lambda: run.get_status() == "Running", "the run runs")
    pid = yard_pid(home)  # not earlier: a slow submission may have reached a yard that was about to exit
    threading.Event().wait(3.0)  # twice its idle time
    assert yard_pid(home) == pid
    stop.touch()
    run.wait_for_completion()


@pytest.mark.parametrize("moment", ["right after submit", "while it runs", "after the script ended"])
def test_kill_9_of_the_yard_loses_nothing(
    home: Path, experiment: Experiment, project, tmp_path: Path, moment: str
) -> None:
    stop = tmp_path / "stop"
    if moment == "after the script ended":
        stop.touch()
    run = experiment.submit(local_config(project(train=SLOW), arguments=[str(stop)]))
    first = yard_pid(home)
    if moment == "while it runs":
        eventually(lambda: "i" in run.get_metrics(), "the script logs")
    elif moment == "after the script ended":
        eventually(lambda: (home / "runs" / run.id / "events.jsonl").exists(), "the script was started")
    stop_yard(home, signal.SIGKILL)
    stop.touch()
    details = run.wait_for_completion()  # starts the next yard, which adopts the run
    assert details["status"] == "Completed"
    assert yard_pid(home) != first
    values = run.get_metrics()["i"]
    values = values if isinstance(values, list) else [values]
    assert values == [float(i) for i in range(len(values))]
    assert "outputs/done.txt" in run.get_file_names()
    printed = (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text().splitlines()
    assert printed == [str(i) for i in range(len(values))]


def test_a_run_that_ended_without_a_yard_is_finalized_by_the_next(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    run = experiment.submit(local_config(project(train=SLOW), arguments=[str(stop)]))
    eventually(lambda: run.get_status() == "Running", "the run runs")
    stop_yard(home, signal.SIGKILL)
    stop.touch()
    agent = int((home / "runs" / run.id / "agent.lock").read_text())
    eventually(lambda: not is_alive(agent), "the agent ends without a yard")
    assert yard_pid(home) is None
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_script_whose_yard_was_killed_starts_the_next(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"""
import os, time
from runyard import Run
run = Run.get_context()
while not os.path.exists({str(go)!r}):
    time.sleep(0.01)
run.tag('phase', 'late')
"""
    run = experiment.submit(local_config(project(train=script)))
    eventually(lambda: run.get_status() == "Running", "the run runs")
    stop_yard(home, signal.SIGKILL)
    go.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_tags()["phase"] == "late"


def test_kill_9_of_the_agent_ends_the_run_and_leaves_no_process(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    script = SLOW + "\n"
    run = experiment.submit(local_config(project(train=script), arguments=[str(tmp_path / "never")]))
    eventually(lambda: "i" in run.get_metrics(), "the script logs")
    events = (home / "runs" / run.id / "events.jsonl").read_text().splitlines()
    pid = json.loads(events[0])["pid"]
    os.kill(int((home / "runs" / run.id / "agent.lock").read_text()), signal.SIGKILL)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert details["error"]["error"]["reason"] == "agent lost"
    assert details["error"]["error"]["details"]["processes_left"] == 0
    assert not is_alive(pid)


def test_a_too_long_socket_path_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path / ("x" * 100)))
    with pytest.raises(HomeUnusable, match="too long") as caught:
        Workspace().connection.get("/api/health")
    assert "RUNYARD_HOME" in caught.value.hint


def test_an_unwritable_home_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("RUNYARD_HOME", str(blocked / "home"))
    with pytest.raises(HomeUnusable, match="cannot be used"):
        Workspace().connection.get("/api/health")


def test_a_damaged_database_is_reported_to_the_client_and_not_changed(home: Path) -> None:
    (home / "yard.db").write_bytes(b"broken" * 1000)
    with pytest.raises(StoreCorrupted, match="was not changed") as caught:
        Workspace().connection.get("/api/health")
    assert "recover" in caught.value.hint
    assert (home / "yard.db").read_bytes() == b"broken" * 1000


def test_a_terminated_yard_removes_its_socket(home: Path, workspace: Workspace) -> None:
    workspace.connection.get("/api/health")
    stop_yard(home, signal.SIGTERM)
    assert not (home / "yard.sock").exists()
    assert not (home / "yard.db-wal").exists()
    assert "closed" in (home / "yard.log").read_text().splitlines()[-1]


def test_a_yard_closes_without_an_error_while_clients_are_connected(home: Path, workspace: Workspace) -> None:
    workspace.connection.get("/api/health")
    idle, unfinished = (socket.socket(socket.AF_UNIX) for _ in range(2))
    with idle, unfinished:
        for connection in (idle, unfinished):
            connection.connect(str(home / "yard.sock"))
        unfinished.sendall(b"POST /api/runs HTTP/1.1\r\nHost: yard\r\nContent-Length: 100\r\n\r\n{")
        idle.sendall(b"GET /api/experiments HTTP/1.1\r\nHost: yard\r\n\r\n")
        assert idle.recv(1000).startswith(b"HTTP/1.1 200")
        stop_yard(home)
        assert idle.recv(1 << 20) in (b"", b"[]")
    assert logged_errors(home) == []


def test_a_yard_with_runs_backs_up_its_database(home: Path, experiment: Experiment) -> None:
    with experiment.start_logging(snapshot_directory=None):
        pass
    stop_yard(home)
    experiment.workspace.connection.get("/api/health")
    eventually(lambda: (home / "yard.db.backup").exists(), "the backup exists")


def test_an_interactive_run_is_completed_when_complete_returns(experiment: Experiment) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.complete()
    assert run.status == "Completed"


def test_a_client_of_another_version_gets_a_hint(
    workspace: Workspace, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.connection.get("/api/health")
    monkeypatch.setattr("runyard.client.connection.__version__", "9.9.9")
    with pytest.raises(RunNotFound) as caught:
        workspace.connection.get("/api/runs/none")
    assert "this is runyard/9.9.9: `runyard yard stop`" in caught.value.hint


def test_a_partial_working_copy_of_a_killed_yard_is_replaced(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    blocker = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    folder = project(block=blocker, train="print('on')")
    cores = experiment.workspace.connection.get("/api/computes/local")["status"]["cpus"]
    for run in [experiment.submit(local_config(folder, "block.py")) for _ in range(cores)]:
        eventually(lambda run=run: run.get_status() == "Running", "every core is taken")
    waiting = experiment.submit(local_config(folder))
    eventually(lambda: waiting.get_status() == "Queued", "the queue is full")
    (home / "runs" / waiting.id / "work" / "outputs").mkdir(parents=True)
    (home / "runs" / waiting.id / "work" / "train.py").write_text("print('half')")
    gate.touch()
    assert waiting.wait_for_completion()["status"] == "Completed"
    assert (home / "runs" / waiting.id / "azureml-logs" / "70_driver_log.txt").read_text() == "on\n"
