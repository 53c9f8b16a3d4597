"""No process of a run remains, whatever it did to escape."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.agent.process.process_tree import find_processes, stop_processes
from runyard.compute.local.compute import LocalCompute
from runyard.launch.variables import PROCESS_TAG, ROLE, process_tag
from runyard.lifecycle.state import EndReason
from runyard.spec.folder import RunFolder
from runyard.testing.work_orders import DAEMON, end_of, events_of, log_of, make_order, processes_of, wait_until


@pytest.fixture
def compute(tmp_path):
    compute = LocalCompute(tmp_path)
    yield compute
    compute.close()


def start_and_wait(compute, order):
    handle = compute.start(order)
    wait_until(lambda: b"up" in log_of(order), "the script to be up")
    return handle


def test_cancel_reaches_twenty_children_and_a_daemon_that_ignores_signals(compute, tmp_path):
    script = DAEMON + (
        "daemon()\n"
        "import subprocess\n"
        "for n in range(20): subprocess.Popen(['sleep', '600'], start_new_session=n % 2 == 0)\n"
        "print('up'); time.sleep(600)"
    )
    order = make_order(tmp_path, script, grace_s=0.3)
    handle = start_and_wait(compute, order)
    assert len(processes_of(order)) >= 22
    compute.stop(handle)
    end = end_of(order)
    assert (end.reason, end.processes_left) == (EndReason.CANCELED, 0)
    assert processes_of(order) == []


@pytest.mark.real
def test_a_script_that_forks_all_the_time_is_stopped(compute, tmp_path):
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up')\n"
        "for generation in range(300):\n"  # a chain: each parent ends as soon as its child exists
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid(); time.sleep(0.01)\n"
        "time.sleep(600)"
    )
    order = make_order(tmp_path, script, grace_s=0.2)
    start_and_wait(compute, order)
    end = end_of(order)
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    assert processes_of(order) == []


def test_a_daemon_without_the_run_tag_is_found_by_descent(compute, tmp_path):
    pid_file = tmp_path / "daemon.pid"
    script = (
        "import os, time\n"
        f"os.system('env -i setsid sh -c \"echo \\\\$\\\\$ > {pid_file}; exec sleep 600\" &')\n"
        f"while not (os.path.exists({str(pid_file)!r}) and open({str(pid_file)!r}).read().strip()): time.sleep(0.005)\n"
        "print('up')"
    )
    order = make_order(tmp_path, script)
    start_and_wait(compute, order)
    assert end_of(order).processes_left == 0
    daemon = Path("/proc", pid_file.read_text().strip())
    wait_until(lambda: not daemon.exists() or ") Z " in (daemon / "stat").read_text(), "the daemon to end")


def test_a_suspended_script_receives_sigterm(compute, tmp_path):
    script = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(0)))\n"
        "print('up'); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)"
    )
    order = make_order(tmp_path, script)
    handle = start_and_wait(compute, order)
    compute.stop(handle)
    assert end_of(order).reason is EndReason.CANCELED
    assert log_of(order).endswith(b"bye\n")


@pytest.mark.real
def test_a_script_always_dies_with_its_agent(compute, tmp_path):
    daemon = DAEMON.replace("SIG_IGN", "SIG_DFL")  # otherwise each round would take the full grace period
    for n in range(20):
        order = make_order(tmp_path, daemon + "daemon(); print('up'); time.sleep(600)", run_id=f"run_{n}")
        handle = start_and_wait(compute, order)
        wait_until(lambda order=order: events_of(order), "the script's start to be written")
        script = events_of(order)[0]["pid"]
        os.kill(compute.status([handle])[handle].pid, signal.SIGKILL)
        wait_until(lambda script=script, order=order: script not in processes_of(order), "the script to die", 5)
        assert compute.stop_leftovers(handle) == 0
        assert processes_of(order) == []


def test_a_yard_started_by_a_script_and_its_runs_are_left_alone(compute, tmp_path):
    """A script may be the first client of a yard; the yard and its runs must outlive the script's run."""
    script = (
        "import os, subprocess, sys\n"
        f"clean = {{k: v for k, v in os.environ.items() if k != {PROCESS_TAG!r}}}\n"
        "def start(**more): return subprocess.Popen(['sleep', '600'], env={**clean, **more}).pid\n"
        f"print(start({ROLE}='yard'), start({PROCESS_TAG}='another@run'), flush=True)\n"
    )
    order = make_order(tmp_path, script)
    compute.start(order)
    end = end_of(order)
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    for pid in map(int, log_of(order).split()):
        assert Path(f"/proc/{pid}").exists()
        os.kill(pid, signal.SIGKILL)


def test_processes_are_found_and_stopped_by_tag_only(tmp_path):
    tag = process_tag("lost", RunFolder(tmp_path))
    env = {**os.environ, PROCESS_TAG: tag}
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    children = [
        subprocess.Popen([sys.executable, "-S", "-c", stubborn], env=env, stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for child in children:
            assert child.stdout.readline() == b"up\n"
        assert {p.pid for p in find_processes(tag)} == {child.pid for child in children}
        assert find_processes(tag[:-1]) == []
        assert stop_processes(tag, 0.1) == 0
        assert [child.wait() for child in children] == [-signal.SIGKILL] * 2
        assert stop_processes(tag, 0.1) == 0
    finally:
        for child in children:
            child.stdout.close()
