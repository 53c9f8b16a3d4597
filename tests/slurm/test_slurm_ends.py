"""Preemption, lost nodes, scancel, and a controller that does not respond."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from slurm_cluster import SCRIPTS, slurm
from slurm_runs import activity, job_of

from gang_support import killed_at_start
from runyard import PyTorchConfiguration, Run
from support import eventually, is_alive

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]

# Continues from the outputs of an earlier attempt; the first attempt waits until it is stopped.
RESUMES = """
import os, sys, time
from runyard import Run
run = Run.get_context()
attempt = int(os.environ['RUNYARD_ATTEMPT'])
outputs = os.environ.get('RUNYARD_RESUME_FROM')
attempts = open(os.path.join(outputs, 'attempts.txt')).read() if outputs else ''
run.log('attempt', attempt)
open('outputs/attempts.txt', 'w').write(attempts + str(attempt))
print('attempt', attempt, 'after', repr(attempts), flush=True)
while attempt < int(sys.argv[1]): time.sleep(0.01)
"""


def log_of(run: Run, name: str = "70_driver_log.txt") -> str:
    path = run.folder / "azureml-logs" / name
    return path.read_text() if path.exists() else ""


def preempt(nodes: int = 4) -> None:
    """A job of a partition with a higher priority takes the nodes for a second."""
    slurm("sbatch", "--partition=urgent", f"--nodes={nodes}", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")


def test_a_preempted_run_ends_with_that_reason(submit) -> None:
    run = submit(RESUMES, 2)
    eventually(lambda: "attempt 1" in log_of(run), "it runs")
    preempt()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert run.end.reason == "preempted"


def test_a_preempted_run_is_retried_if_attempts_are_left(submit) -> None:
    run = submit(RESUMES, 2, max_attempts=2)
    eventually(lambda: "attempt 1" in log_of(run), "it runs")
    preempt()
    assert run.wait_for_completion()["status"] == "Completed"
    assert log_of(run).splitlines() == [
        "attempt 1 after ''",
        "--- attempt 2: preempted ---",
        "attempt 2 after '1'",
    ]
    assert run.get_metrics() == {"attempt": [1, 2]}


def test_a_preempted_gang_is_retried_on_all_nodes(submit) -> None:
    script = (
        "import os, time\nattempt = int(os.environ['RUNYARD_ATTEMPT'])\nprint('attempt', attempt, flush=True)\n"
        "while attempt < 2: time.sleep(0.01)\n"
    )
    run = submit(script, job=PyTorchConfiguration("Gloo", process_count=2, node_count=2), max_attempts=2)
    ranks = ("70_driver_log_rank_0.txt", "70_driver_log_rank_1.txt")
    eventually(lambda: all("attempt 1" in log_of(run, name) for name in ranks), "both nodes run")
    preempt()
    assert run.wait_for_completion()["status"] == "Completed"
    assert [attempt.reason for attempt in run.attempts] == ["preempted"]
    assert all("attempt 2" in log_of(run, name) for name in ranks)


def test_a_lost_node_starts_the_next_attempt(submit, slurm_folder: Path) -> None:
    script = (
        "import os, time\nattempt = int(os.environ['RUNYARD_ATTEMPT'])\n"
        "print('attempt', attempt, os.environ['SLURMD_NODENAME'], flush=True)\n"
        "while attempt < 2: time.sleep(0.01)\n"
    )
    job = PyTorchConfiguration("Gloo", process_count=2, node_count=2)
    run = submit(script, job=job, max_attempts=2)
    eventually(lambda: "attempt 1" in log_of(run, "70_driver_log_rank_1.txt"), "both nodes run")
    lost = log_of(run, "70_driver_log_rank_1.txt").split()[-1]
    kill_node(lost, slurm_folder, run)
    try:
        assert run.wait_for_completion()["status"] == "Completed"
        assert run.attempts[0].reason == "node lost"
        assert f"--- attempt 2: node lost ({lost}) ---" in log_of(run, "70_driver_log_rank_0.txt")
    finally:
        subprocess.run([SCRIPTS / "start-slurm", "node", slurm_folder, lost], check=True)
        eventually(
            lambda: slurm("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D").strip() == "4", "the node is back"
        )


def kill_node(name: str, slurm_folder: Path, run: Run) -> None:
    """Simulate a power failure: kill the node's daemon and every process of the run on it."""
    os.kill(int((slurm_folder / f"slurmd-{name}.pid").read_text()), signal.SIGKILL)
    mark, node = f"RUNYARD_RUN_ID={run.id}".encode(), f"SLURMD_NODENAME={name}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        is_agent = node in environment and run.id.encode() in command
        if is_agent or (mark in environment and node in environment):
            os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.parametrize(("lock", "reason"), [("nodes/1/agent.lock", "node lost"), ("agent.lock", "agent lost")])
def test_a_gang_whose_agent_is_killed_at_its_start_is_retried(submit, home: Path, lock: str, reason: str) -> None:
    """The other agent ends, and with it the job."""
    script = "import os, time\nif os.environ['RUNYARD_ATTEMPT'] == '1': time.sleep(600)\n"
    with killed_at_start(home, lock):
        run = submit(script, job=PyTorchConfiguration("Gloo", process_count=2, node_count=2), max_attempts=2)
        eventually(lambda: run.get_status() == "Completed", "the second attempt completes")
    assert [attempt.reason for attempt in run.attempts] == [reason]


def test_a_run_completes_while_slurm_does_not_respond(submit, slurm_folder: Path, tmp_path: Path, home: Path) -> None:
    gate = tmp_path / "gate"
    run = submit(
        "import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)", gate
    )
    eventually(lambda: run.get_status() == "Running", "it runs")
    controller = int((slurm_folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        gate.touch()
        assert run.wait_for_completion()["status"] == "Completed"
    finally:
        os.kill(controller, signal.SIGCONT)


def test_a_cancel_request_is_repeated_when_slurm_responds_again(submit, slurm_folder: Path) -> None:
    run = submit("import time\nprint('up', flush=True)\ntime.sleep(600)")
    eventually(lambda: run.get_status() == "Running", "it runs")
    stop_controller(slurm_folder)
    run.cancel()
    stop = run.folder / "stop.json"
    eventually(stop.exists, "the yard writes the stop request")
    subprocess.run([SCRIPTS / "start-slurm", "controller", slurm_folder], check=True)
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"


def stop_controller(slurm_folder: Path) -> None:
    """With SIGTERM: after SIGKILL it would restore an older state, with jobs of other tests."""
    pid = int((slurm_folder / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not is_alive(pid), "the controller has stopped")


def test_scancel_by_hand_cancels_the_run(submit, home: Path, tmp_path: Path) -> None:
    run = submit("import time\nprint('up', flush=True)\ntime.sleep(600)")
    eventually(lambda: run.get_status() == "Running", "it runs")
    slurm("scancel", job_of(run, home))
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    assert "scancel" in run.end.message


def test_canceling_a_waiting_job_cancels_the_run(submit, home: Path, tmp_path: Path) -> None:
    slurm("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        run = submit("print(1)")
        eventually(lambda: "PartitionDown" in activity(run), "it waits")
        slurm("scancel", job_of(run, home))
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    finally:
        slurm("scontrol", "update", "PartitionName=main", "State=UP")
