"""The local target: the contract of all targets, and its own guarantees."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from runyard.compute.base import Handle
from runyard.compute.local.compute import LocalCompute
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node
from runyard.posix import file_lock
from runyard.posix.atomic_write import remove_stale_drafts
from runyard.spec.folder import RunFolder
from runyard.testing.compute import ComputeContract
from runyard.testing.work_orders import end_of, events_of, log_of, make_gang_order, make_order, wait_until

ENDED = "script_ended"


@pytest.mark.real
class TestLocalCompute(ComputeContract):
    @pytest.fixture
    def compute(self, tmp_path: Path) -> Iterator[LocalCompute]:
        compute = LocalCompute(tmp_path)
        yield compute
        compute.close()


@pytest.fixture
def compute(tmp_path):
    compute = LocalCompute(tmp_path)
    yield compute
    compute.close()


def test_the_rendered_text_does_the_same_in_a_shell(compute, tmp_path):
    script = "import os, sys; print(sys.argv[1:], os.environ['ODD'], sorted(os.environ) == sorted(os.environ))"
    order = make_order(tmp_path, script, "it's", "$ODD", variables={"ODD": "a 'b' \"c\" $d"})
    Path(order.folder, "azureml-logs").mkdir()
    subprocess.run(["sh", "-c", compute.render(order)], check=True)
    by_hand = log_of(order)
    Path(order.folder, "azureml-logs/70_driver_log.txt").unlink()
    compute.start(order)
    end_of(order)
    assert log_of(order) == by_hand
    assert by_hand.startswith(b'["it\'s", ')
    assert shlex.quote("it's") in compute.render(order)


def test_a_failed_start_leaves_no_agent_on_other_nodes(compute, tmp_path, monkeypatch):
    order = make_gang_order(tmp_path, tuple(Node(f"node-{number}") for number in range(3)), "print('up')")
    fork_agent = compute.forkserver.fork_agent
    started = []

    def refuse_lead(path, *arguments):
        if path == RunFolder(Path(order.folder)).order:
            raise ComputeTargetException("the agent could not be forked")
        started.append(fork_agent(path, *arguments))
        return started[-1]

    monkeypatch.setattr(compute.forkserver, "fork_agent", refuse_lead)
    with pytest.raises(ComputeTargetException, match="could not be forked"):
        compute.start(order)
    assert len(started) == 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "the agents to exit")


def test_the_next_attempt_starts_after_the_clock_was_set_back(compute, tmp_path):
    """The files of the previous attempt are then newer than its order."""
    order = make_gang_order(tmp_path, (Node("node-0"), Node("node-1")), "print('up')")
    for attempt in (1, 2):
        handle = compute.start(replace(order, attempt=attempt))
        ends = wait_until(lambda n=attempt: [e for e in events_of(order) if (e["event"], e["attempt"]) == (ENDED, n)])
        assert ends[0]["end"]["reason"] == "succeeded", ends
        folder = RunFolder(Path(order.folder))
        for node in (folder, folder.node(1)):
            wait_until(lambda path=node.agent_lock: not file_lock.is_held(path), "the agent to exit")
            os.utime(node.agent_lock, (4e9, 4e9))
    assert compute.status([handle]) == {}


def test_agents_outlive_the_fork_server_and_the_next_start_restarts_it(compute, tmp_path):
    gate = tmp_path / "gate"
    script = f"print('up')\nimport os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    first = make_order(tmp_path, script, run_id="run_1")
    compute.start(first)
    wait_until(lambda: log_of(first), "the first line")
    os.kill(compute.forkserver._process.pid, signal.SIGKILL)
    second = make_order(tmp_path, script, run_id="run_2")
    compute.start(second)
    gate.touch()
    assert end_of(first).exit_code == 0
    assert end_of(second).exit_code == 0


def test_a_script_starts_although_its_waiting_process_was_killed(compute, tmp_path, monkeypatch):
    monkeypatch.setenv("MARK", str(tmp_path))
    compute.forkserver.warm_up()

    def waiting():
        """The process that was forked ahead to become a script; its parent is the spare agent."""
        mine = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"MARK={tmp_path}\0".encode() in (entry / "environ").read_bytes():
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    mine.append((int(entry.name), int(fields[1])))
        pids = {pid for pid, _ in mine}
        agents = {pid for pid, parent in mine if parent not in pids and pid != compute.forkserver._process.pid}
        return [pid for pid, parent in mine if parent in agents]

    wait_until(waiting, "a process that waits for its script")
    (child,) = waiting()
    os.kill(child, signal.SIGTERM)
    wait_until(lambda: not waiting(), "it to end")
    order = make_order(tmp_path, "print('here')")
    compute.start(order)
    assert end_of(order).exit_code == 0
    assert log_of(order) == b"here\n"


def test_the_fork_server_exits_with_its_yard_and_runs_continue(tmp_path):
    gate = tmp_path / "gate"
    order = make_order(tmp_path, f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)")
    Path(tmp_path, "order.txt").write_text(repr(order))
    yard = (
        "import sys, os; from pathlib import Path\n"
        "from runyard.launch.order import *; from runyard.spec.launch import *\n"
        "from runyard.compute.local.compute import LocalCompute\n"
        f"c = LocalCompute(Path({str(tmp_path)!r})); c.start(eval(Path({str(tmp_path / 'order.txt')!r}).read_text()))\n"
        "print(c.forkserver._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    mark = f"MARK={tmp_path}".encode()
    marked = {**os.environ, "MARK": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", yard], capture_output=True, text=True, env=marked)
    forkserver = Path("/proc", result.stdout.strip())
    wait_until(lambda: not forkserver.exists() or " Z " in (forkserver / "stat").read_text(), "the fork server to exit")
    assert [e["event"] for e in events_of(order)][:1] in (["script_started"], [])
    gate.touch()
    assert end_of(order).exit_code == 0

    def is_running():
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in path.read_bytes():
                    return True
        return False

    wait_until(lambda: not is_running(), "the agent that waited for an order to end")


def test_a_run_can_be_stopped_while_it_is_cleaned_up(compute, tmp_path):
    order = make_order(tmp_path, "print('never')")
    Path(order.folder, "stop.json.999999999.7.draft").touch()  # of a yard that was killed
    done = []

    def tidy():
        while not done:
            remove_stale_drafts(Path(order.folder))

    tidying = Thread(target=tidy)
    tidying.start()
    try:
        for _ in range(300):
            compute.stop(Handle(order.run_id, order.folder), "out of time")
    finally:
        done.append(True)
        tidying.join()
    assert [path.name for path in Path(order.folder).glob("stop.json*")] == ["stop.json"]
    assert json.loads(Path(order.folder, "stop.json").read_bytes()) == {"reason": "out of time"}


def test_an_agent_is_neither_a_child_of_the_yard_nor_in_its_session(compute, tmp_path):
    order = make_order(tmp_path, "import time; time.sleep(600)")
    handle = compute.start(order)
    agent = compute.status([handle])[handle].pid
    fields = Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) not in (os.getpid(), compute.forkserver._process.pid)
    assert int(fields[3]) != os.getsid(0)
    assert sorted(p.readlink().name for p in Path(f"/proc/{agent}/fd").iterdir() if p.name in "012") == ["null"] * 3
    compute.stop(handle)
    end_of(order)


def test_a_stop_request_before_the_start_wins(compute, tmp_path):
    order = make_order(tmp_path, "print('never')")
    handle = compute.start(make_order(tmp_path, "", run_id="other"))
    compute.stop(type(handle)(order.run_id, order.folder))
    compute.start(order)
    end = end_of(order)
    assert (end.reason.value, end.processes_left) == ("canceled", 0)
    assert log_of(order) == b""


def test_an_order_that_cannot_be_written_is_an_error(compute, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    order = make_order(tmp_path, "")
    order = type(order)(order.run_id, str(blocked / "run"), order.argv)
    with pytest.raises(ComputeTargetException, match="cannot write the order"):
        compute.start(order)


def test_polling_the_status_never_keeps_an_agent_from_starting(compute, tmp_path):
    orders = [make_order(tmp_path, "print('ran')", run_id=f"run_{n}") for n in range(20)]
    handles = [Handle(order.run_id, order.folder) for order in orders]
    looking = True

    def look():
        while looking:
            compute.status(handles)

    watcher = Thread(target=look)
    watcher.start()
    try:
        for order in orders:
            compute.start(order)
        assert {end_of(order).exit_code for order in orders} == {0}
    finally:
        looking = False
        watcher.join()


def test_many_threads_start_many_runs(compute, tmp_path):
    orders = [make_order(tmp_path, "print('ran')", run_id=f"run_{n}") for n in range(30)]
    threads = [Thread(target=compute.start, args=(order,)) for order in orders for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {end_of(order).exit_code for order in orders} == {0}
    assert {log_of(order) for order in orders} == {b"ran\n"}
