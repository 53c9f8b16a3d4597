"""What holds when something breaks: a cable, the yard, an agent, a courier, a host. Nothing is lost, nothing twice."""

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

# writes and logs without end, until somebody puts a file beside it
COUNTING = """
import os, socket, time
from runyard import Run
run = Run.get_context()
step = 0
while not os.path.exists(os.path.expanduser('~/enough')):
    print('line', step, flush=True)
    run.log('step', step, step=step)
    step += 1
    time.sleep(0.01)
run.log('last', step)
open('outputs/steps.txt', 'w').write(str(step))
"""


def test_a_cable_that_is_cut_for_half_a_minute_harms_nobody(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = where_it_runs(run, home, net)
    host.cut()
    try:
        eventually(lambda: silence_s(run, host) >= 28, "the run says how long nothing was heard", 60)
        assert run.get_status() == "Running"
        seen = lines(run, home)
    finally:
        host.mend()
    eventually(lambda: len(lines(run, home)) > len(seen) + 1000, "what was written meanwhile arrives", 60)
    eventually(lambda: "no word" not in activity(run), "nothing is missed any more")
    end_and_count(run, home, host)


def test_a_yard_that_is_killed_finds_its_runs_on_hosts_again(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = where_it_runs(run, home, net)
    stop_yard(home, signal.SIGKILL)
    assert train_processes(host.processes())
    eventually(lambda: run.get_status() == "Running", "the next yard has read that it runs")
    before = len(lines(run, home))
    eventually(lambda: len(lines(run, home)) > before, "the next yard reads on")
    end_and_count(run, home, host)


def test_a_courier_that_is_killed_is_replaced(experiment: Experiment, on_lab: OnLab, home: Path, net: Net) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = where_it_runs(run, home, net)
    for pid in host.processes():
        if b"sys.stdin.buffer.readline" in command(pid):
            os.kill(pid, signal.SIGKILL)
    before = len(lines(run, home))
    eventually(lambda: len(lines(run, home)) > before, "the next courier brings the rest")
    end_and_count(run, home, host)


def test_what_a_killed_agent_left_on_a_host_is_stopped(
    experiment: Experiment, on_lab: OnLab, home: Path, net: Net
) -> None:
    run = experiment.submit(on_lab(COUNTING))
    host = where_it_runs(run, home, net)
    (script,) = train_processes(host.processes())
    lock = host.runs()[run.id] / "agent.lock"
    os.kill(int(lock.read_text()), signal.SIGKILL)
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "agent" in str(run.get_details()["error"])
    assert not is_alive(script)
    assert len(run.get_metrics()["step"]) > 0


def where_it_runs(run: Run, home: Path, net: Net) -> SshHost:
    eventually(lambda: len(lines(run, home)) > 5, "the run writes", 60)
    return next(host for host in net.hosts if run.id in host.runs())


def end_and_count(run: Run, home: Path, host: SshHost) -> None:
    """Lets the script end; every line and every point is there once, in order."""
    enough = host.home / "enough"
    enough.touch()
    try:
        run.wait_for_completion(show_output=False)
    finally:
        enough.unlink()
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
    found = re.search(rf"no word from {host.name} since (\d+) s", activity(run))
    return int(found[1]) if found else 0
