"""Hosts that die, or are away when somebody wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, SshCompute, Workspace
from ssh_hosts import Net, SshHost, require_sshd, ssh_hosts
from support import a_home, complaints, eventually

SLOW = "import time\nprint('up', flush=True)\ntime.sleep(600)"

# the first attempt never ends by itself; the second tells what it was given
TWICE = """
import os, time
attempt = os.environ['RUNYARD_ATTEMPT']
print('attempt', attempt, flush=True)
if attempt == '1':
    time.sleep(600)
"""


@pytest.fixture
def mortal() -> Iterator[Net]:
    require_sshd()
    with ssh_hosts(2) as found:
        yield found


@pytest.fixture
def home(mortal: Net, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        monkeypatch.setenv("RUNYARD_SSH", mortal.ssh)
        monkeypatch.setenv("RUNYARD_HOST_PATIENCE_S", "5")
        yield folder
        said = complaints(folder)
    assert said == []


@pytest.fixture
def pair(workspace: Workspace, mortal: Net) -> ComputeTarget:
    hosts = [host.login for host in mortal.hosts]
    return ComputeTarget.attach(workspace, "pair", SshCompute.attach_configuration(hosts, key=mortal.key, slots=1))


@pytest.fixture
def submit(experiment: Experiment, pair: ComputeTarget, project: Callable[..., Path], home: Path) -> Callable[..., Run]:
    def submitted(script: str, max_attempts: int = 1, distributed: object = None) -> Run:
        config = ScriptRunConfig(
            project(train=script), script="train.py", compute_target=pair, distributed_job_config=distributed
        )
        config.run_config.environment.python.user_managed_dependencies = True
        config.run_config.environment.python.interpreter_path = "/usr/bin/python3"
        config.max_attempts = max_attempts
        return experiment.submit(config)

    return submitted


def test_a_run_whose_host_died_begins_anew_on_another_where_that_was_asked_for(
    submit: Callable[..., Run], mortal: Net, home: Path
) -> None:
    run = submit(TWICE, max_attempts=2)
    eventually(lambda: "attempt 1" in log(run, home), "the first attempt is up", 60)
    first = where_it_is(run, mortal)
    first.die()
    run.wait_for_completion(show_output=False)
    said = log(run, home).splitlines()
    assert [said[0], said[-1]] == ["attempt 1", "attempt 2"]
    assert f"node lost ({first.name})" in "\n".join(said)


def test_a_run_whose_host_died_ends_with_that_reason_and_others_go_elsewhere(
    submit: Callable[..., Run], mortal: Net, home: Path
) -> None:
    run = submit(SLOW)
    eventually(lambda: log(run, home), "the run is up", 60)
    host = where_it_is(run, mortal)
    host.die()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert f"{host.name} has not been heard of for" in str(run.get_details()["error"])
    # the dead host is passed over, with the reason, and the other one serves
    taken = submit(SLOW)
    eventually(lambda: log(taken, home), "the host that is left takes the next run", 60)
    waiting = submit(SLOW)  # not before: of two that are prepared at the same time, either may be the first
    eventually(lambda: f"{host.name}: cannot be reached" in activity(waiting), "the other waits and says for what", 60)
    for each in (taken, waiting):
        each.cancel()
        each.wait_for_completion(show_output=False, raise_on_error=False)


def test_a_gang_ends_when_one_of_its_hosts_loses_everything(
    submit: Callable[..., Run], mortal: Net, home: Path
) -> None:
    run = submit(SLOW, distributed=PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    eventually(lambda: log(run, home, "_rank_0") and log(run, home, "_rank_1"), "both ranks are up", 60)
    member = mortal.hosts[1]
    member.kill_everything()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Failed"
    assert member.name in str(run.get_details()["error"])


def where_it_is(run: Run, net: Net) -> SshHost:
    return next(host for host in net.hosts if run.id in host.runs())


def log(run: Run, home: Path, suffix: str = "") -> str:
    path = home / "runs" / run.id / "azureml-logs" / f"70_driver_log{suffix}.txt"
    return path.read_text() if path.exists() else ""


def activity(run: Run) -> str:
    return str(run.experiment.workspace.connection.get(f"/api/runs/{run.id}")["activity"])
