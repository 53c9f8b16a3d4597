"""Failures of the network, the yard, an agent or a remote agent: no output is lost or duplicated."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from runyard import Experiment, Run, ScriptRunConfig
from ssh_hosts import Net, SshHost, command, train_processes
from support import eventually, is_alive, stop_yard

OnLab = Callable[..., ScriptRunConfig]

# prints and logs until a file appears
COUNTING = """
import os, socket, time
from runyard import Run
run = Run.get_context()
step = 0
while not os.path.exists(os.path.expanduser('~/stop')):
    print('line', step, flush=True)
    run.log('step', step, step=step)
    step += 1
    time.sleep(0.01)
run.log('last', step)
open('outputs/steps.txt', 'w').write(str(step))
"""


def test_a_run_survives_a_network_outage_of_half_a_minute(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = host_of(run, home, net)
    host.disconnect()
    try:
        eventually(lambda: silence_s(run, host) >= 28, "the run reports how long the host did not respond", 60)
        assert run.get_status() == "Running"
        received = lines(run, home)
    finally:
        host.reconnect()
    eventually(lambda: len(lines(run, home)) > len(received) + 1000, "the missing lines arrive", 60)
    eventually(lambda: "no response" not in activity(run), "the message disappears")
    stop_and_check(run, home, host)


def test_a_restarted_yard_finds_its_runs_on_hosts(experiment: Experiment, on_lab: OnLab, home: Path, net: Net) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = host_of(run, home, net)
    stop_yard(home, signal.SIGKILL)
    assert train_processes(host.processes())
    eventually(lambda: run.get_status() == "Running", "the next yard sees that it runs")
    before = len(lines(run, home))
    eventually(lambda: len(lines(run, home)) > before, "the next yard receives more")
    stop_and_check(run, home, host)


def test_a_killed_remote_agent_is_replaced(experiment: Experiment, on_lab: OnLab, home: Path, net: Net) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = host_of(run, home, net)
    for pid in host.processes():
        if b"sys.stdin.buffer.readline" in command(pid):
            os.kill(pid, signal.SIGKILL)
    before = len(lines(run, home))
    eventually(lambda: len(lines(run, home)) > before, "the next remote agent sends the rest")
    stop_and_check(run, home, host)


def test_processes_of_a_killed_agent_on_a_host_are_stopped(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = host_of(run, home, net)
    (script,) = train_processes(host.processes())
    lock = host.runs()[run.id] / "agent.lock"
    os.kill(int(lock.read_text()), signal.SIGKILL)
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "agent" in str(run.get_details()["error"])
    assert not is_alive(script)
    assert len(run.get_metrics()["step"]) > 0


def host_of(run: Run, home: Path, net: Net) -> SshHost:
    eventually(lambda: len(lines(run, home)) > 5, "the run prints", 60)
    return next(host for host in net.hosts if run.id in host.runs())


def stop_and_check(run: Run, home: Path, host: SshHost) -> None:
    """Let the script end, and check that every line and every point arrived once, in order."""
    stop = host.home / "stop"
    stop.touch()
    try:
        run.wait_for_completion(show_output=False)
    finally:
        stop.unlink()
    metrics = run.get_metrics()
    steps = int(metrics["last"])
    assert lines(run, home) == [f"line {step}" for step in range(steps)]
    assert metrics["step"] == list(range(steps))
    assert "outputs/steps.txt" in run.get_file_names()


def lines(run: Run, home: Path) -> list[str]:
    path = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    return path.read_text().splitlines() if path.exists() else []


def activity(run: Run) -> str:
    return str(run.experiment.workspace.connection.get(f"/api/runs/{run.id}")["activity"])


def silence_s(run: Run, host: SshHost) -> int:
    match = re.search(rf"no response from {host.name} for (\d+) s", activity(run))
    return int(match[1]) if match else 0
