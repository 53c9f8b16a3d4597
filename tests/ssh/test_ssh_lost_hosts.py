"""Hosts that fail or cannot be reached."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, SshCompute, Workspace
from ssh_hosts import Net, SshHost, require_sshd, ssh_hosts
from support import a_home, eventually, logged_errors

SLOW = "import time\nprint('up', flush=True)\ntime.sleep(600)"

# the first attempt does not end; the second prints its number
TWICE = """
import os, time
attempt = os.environ['RUNYARD_ATTEMPT']
print('attempt', attempt, flush=True)
if attempt == '1':
    time.sleep(600)
"""


@pytest.fixture
def unreliable_net() -> Iterator[Net]:
    require_sshd()
    with ssh_hosts(2) as hosts_net:
        yield hosts_net


@pytest.fixture
def home(unreliable_net: Net, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        monkeypatch.setenv("RUNYARD_SSH", unreliable_net.ssh)
        monkeypatch.setenv("RUNYARD_HOST_PATIENCE_S", "5")
        yield folder
        errors = logged_errors(folder)
    assert errors == []


@pytest.fixture
def pair(workspace: Workspace, unreliable_net: Net) -> ComputeTarget:
    hosts = [host.login for host in unreliable_net.hosts]
    return ComputeTarget.attach(
        workspace, "pair", SshCompute.attach_configuration(hosts, key=unreliable_net.key, slots=1)
    )


@pytest.fixture
def submit(experiment: Experiment, pair: ComputeTarget, project: Callable[..., Path], home: Path) -> Callable[..., Run]:
    def submit_script(script: str, max_attempts: int = 1, distributed: object = None) -> Run:
        config = ScriptRunConfig(
            project(train=script), script="train.py", compute_target=pair, distributed_job_config=distributed
        )
        config.run_config.environment.python.user_managed_dependencies = True
        config.run_config.environment.python.interpreter_path = "/usr/bin/python3"
        config.max_attempts = max_attempts
        return experiment.submit(config)

    return submit_script


def test_a_run_whose_host_failed_is_retried_on_another(
    submit: Callable[..., Run], unreliable_net: Net, home: Path
) -> None:
    run = submit(TWICE, max_attempts=2)
    eventually(lambda: "attempt 1" in log(run, home), "the first attempt is up", 60)
    first = host_of(run, unreliable_net)
    first.fail()
    run.wait_for_completion(show_output=False)
    lines = log(run, home).splitlines()
    assert [lines[0], lines[-1]] == ["attempt 1", "attempt 2"]
    assert f"node lost ({first.name})" in "\n".join(lines)


def test_a_run_whose_host_failed_ends_with_that_reason_and_others_use_another_host(
    submit: Callable[..., Run], unreliable_net: Net, home: Path
) -> None:
    run = submit(SLOW)
    eventually(lambda: log(run, home), "the run is up", 60)
    host = host_of(run, unreliable_net)
    host.fail()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert f"{host.name} has been unreachable for" in str(run.get_details()["error"])
    # the failed host is skipped, with the reason
    running = submit(SLOW)
    eventually(lambda: log(running, home), "the other host runs the next run", 60)
    waiting = submit(SLOW)  # not earlier: either of two runs prepared at the same time may be first
    eventually(lambda: f"{host.name}: cannot be reached" in activity(waiting), "the other run waits with a reason", 60)
    for unfinished in (running, waiting):
        unfinished.cancel()
        unfinished.wait_for_completion(show_output=False, raise_on_error=False)


def test_a_gang_ends_when_all_processes_of_one_host_are_killed(
    submit: Callable[..., Run], unreliable_net: Net, home: Path
) -> None:
    run = submit(SLOW, distributed=PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    eventually(lambda: log(run, home, "_rank_0") and log(run, home, "_rank_1"), "both ranks are up", 60)
    member = unreliable_net.hosts[1]
    member.kill_processes()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert member.name in str(run.get_details()["error"])


def test_a_gang_whose_agent_is_killed_before_it_reaches_the_lead_is_retried(
    submit: Callable[..., Run], unreliable_net: Net, home: Path
) -> None:
    lead, member = unreliable_net.hosts
    member.inside(f"ip route add prohibit {lead.address}/32")  # the yard reaches both
    run = submit("print('up')", 2, PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    eventually(lambda: agent_pid(run, member), "the agent of the second host starts", 60)
    os.kill(agent_pid(run, member), signal.SIGKILL)
    member.inside(f"ip route del prohibit {lead.address}/32")
    eventually(lambda: run.get_status() == "Completed", "the second attempt completes", 60)
    assert [attempt.reason for attempt in run.attempts] == ["node lost"]
    assert run.attempts[0].message == f"{member.name}: its agent died before it connected"


def agent_pid(run: Run, host: SshHost) -> int:
    lock = host.runs().get(run.id, Path("/nowhere")) / "nodes/1/agent.lock"
    return int(lock.read_text() or "0") if lock.exists() else 0


def host_of(run: Run, net: Net) -> SshHost:
    return next(host for host in net.hosts if run.id in host.runs())


def log(run: Run, home: Path, suffix: str = "") -> str:
    path = home / "runs" / run.id / "azureml-logs" / f"70_driver_log{suffix}.txt"
    return path.read_text() if path.exists() else ""


def activity(run: Run) -> str:
    return str(run.experiment.workspace.connection.get(f"/api/runs/{run.id}")["activity"])
