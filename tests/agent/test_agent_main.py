"""One agent per run: with and without a fork server, started twice, without a yard."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

import runyard
from runyard.agent.notify import NotificationListener
from runyard.compute.local.compute import LocalCompute
from runyard.lifecycle.state import EndReason
from runyard.posix import unix_socket
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json
from runyard.testing.work_orders import end_of, events_of, log_of, make_order, wait_until
from support import pythons

SOURCE = str(Path(runyard.__file__).parents[1])


def start_agent(order, python=sys.executable):
    path = Path(order.folder, "order.json")
    path.write_text(json.dumps(to_json(order)))
    return subprocess.Popen([python, "-m", "runyard.agent", str(path)], env={**os.environ, "PYTHONPATH": SOURCE})


@pytest.mark.parametrize("python", pythons(), ids=lambda python: python.version)
def test_an_agent_starts_on_every_python_of_this_machine(tmp_path, python):
    order = make_order(tmp_path, "print('hello'); raise ValueError('bad lr')")
    assert start_agent(order, python.path).wait() == 0
    end = end_of(order)
    assert (end.reason, end.message, end.processes_left) == (EndReason.SCRIPT_FAILED, "ValueError: bad lr", 0)
    assert log_of(order).startswith(b"hello\n")


@pytest.mark.real
def test_two_agents_race_and_one_script_runs(tmp_path):
    for n in range(3):
        order = make_order(tmp_path, "print('once')\nimport time; time.sleep(0.2)", run_id=f"run_{n}")
        agents = [start_agent(order) for _ in range(3)]
        assert [agent.wait() for agent in agents] == [0, 0, 0]
        assert log_of(order) == b"once\n"
        assert [e["event"] for e in events_of(order)] == ["script_started", "script_ended"]


def test_an_agent_ignores_hangup_and_interrupt(tmp_path):
    gate = tmp_path / "gate"
    order = make_order(
        tmp_path, f"print('up')\nimport os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    )
    agent = start_agent(order)
    wait_until(lambda: log_of(order), "the first line")
    agent.send_signal(signal.SIGHUP)
    agent.send_signal(signal.SIGINT)
    gate.touch()
    assert agent.wait() == 0
    assert end_of(order).reason is EndReason.SUCCEEDED


def test_sigterm_without_a_reason_is_a_cancel(tmp_path):
    order = make_order(tmp_path, "print('up')\nimport time; time.sleep(600)")
    agent = start_agent(order)
    wait_until(lambda: log_of(order), "the first line")
    agent.terminate()
    assert agent.wait() == 0
    end = end_of(order)
    assert (end.reason, end.message) == (EndReason.CANCELED, "canceled")


def test_a_truncated_event_does_not_corrupt_the_next(tmp_path):
    order = make_order(tmp_path, "print('ran')")
    events = Path(order.folder, "events.jsonl")
    events.write_bytes(b'{"event": "script_st')
    assert start_agent(order).wait() == 0
    assert [json.loads(line)["event"] for line in events.read_bytes().splitlines()[1:]] == [
        "script_started",
        "script_ended",
    ]


def test_the_yard_is_notified_of_start_and_end():
    with tempfile.TemporaryDirectory(prefix="ry") as short:
        root = Path(short)
        gate = root / "gate"
        script = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
        order = make_order(root, script, notify_socket=str(root / HomeFolder.NOTIFY_SOCKET))
        notifications = []
        NotificationListener(
            root / HomeFolder.NOTIFY_SOCKET,
            lambda run_id: notifications.append((run_id, [e["event"] for e in events_of(order)])),
        )
        agent = start_agent(order)
        wait_until(lambda: notifications, "the first notification")
        gate.touch()
        assert agent.wait() == 0
        wait_until(lambda: len(notifications) == 2, "the last notification")
        assert notifications == [("run_1", ["script_started"]), ("run_1", ["script_started", "script_ended"])]


@pytest.mark.real
def test_a_yard_that_is_down_or_does_not_respond_does_not_delay_a_run(tmp_path):
    order = make_order(tmp_path, "print('ran')", notify_socket=str(tmp_path / "missing.sock"))
    assert start_agent(order).wait() == 0
    assert end_of(order).exit_code == 0
    with tempfile.TemporaryDirectory(prefix="ry") as short:
        with unix_socket.bind(HomeFolder(Path(short)).notify_socket, socket.SOCK_DGRAM):
            fill(f"{short}/{HomeFolder.NOTIFY_SOCKET}")
            order = make_order(
                tmp_path, "print('ran')", run_id="run_2", notify_socket=f"{short}/{HomeFolder.NOTIFY_SOCKET}"
            )
            assert start_agent(order).wait(timeout=30) == 0
        assert end_of(order).exit_code == 0


def fill(path: str) -> None:
    """Fill the queue of a datagram socket that is not read."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                sender.sendto(b"run", path)


def test_an_invalid_order_is_refused_immediately(tmp_path):
    compute = LocalCompute(tmp_path)
    invalid = tmp_path / "order.json"
    invalid.write_text("{")
    try:
        with pytest.raises(Exception, match=r"cannot start the agent of .*: JSONDecodeError"):
            compute.forkserver.fork_agent(invalid)
    finally:
        compute.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.real
def test_a_full_disk_delays_the_last_event_and_loses_nothing(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting is not allowed")
    try:
        script = "import os\ntry:\n    while True: os.write(1, b'x' * 4096)\nexcept OSError: os._exit(7)"
        order = make_order(disk, script)
        filler = json.dumps({"event": "filler", "text": "x" * 3950})  # the start fits on its page, the end does not
        Path(order.folder, "events.jsonl").write_text(filler + "\n")
        agent = start_agent(order)
        log = Path(order.folder, "azureml-logs/70_driver_log.txt")
        wait_until(lambda: log.exists() and os.statvfs(disk).f_bavail == 0, "the disk to be full")
        with pytest.raises(subprocess.TimeoutExpired):
            agent.wait(timeout=1)  # it retries
        log.write_bytes(b"")
        assert agent.wait(timeout=30) == 0
        assert end_of(order).exit_code == 7
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
