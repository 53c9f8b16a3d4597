"""Cached facts about jobs, with a simulated Slurm controller."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.compute.base import AgentStatus, Handle
from runyard.compute.slurm.client import CommandResult, Slurm, SlurmUnavailable
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.login_node import LoginNodeCompute
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.ssh.host import FollowedRun, Host
from runyard.compute.ssh.openssh import Address
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder
from runyard.spec.folder import RunFolder
from runyard.testing.work_orders import wait_until


class Controller:
    """Gives every job the id ``next``; ``jobs`` are the states of the jobs it knows."""

    def __init__(self) -> None:
        self.next, self.jobs = "7", dict[str, str]()
        self.canceled: list[str] = []
        self.during_sbatch: Callable[[], None] = lambda: None

    def run(self, argv: Sequence[str]) -> CommandResult:
        if argv[0] == "sbatch":
            self.during_sbatch()
            return CommandResult(0, self.next, "")
        if argv[0] == "scancel":
            self.canceled.append(argv[-1])
        if argv[0] == "squeue" and "--states=all" in argv:
            return CommandResult(0, "".join(f"{number}\n" for number in self.jobs), "")
        if argv[0] == "squeue":
            return CommandResult(0, "".join(f"{number}|{state}|None\n" for number, state in self.jobs.items()), "")
        if argv[0] == "scontrol" and argv[-1] not in self.jobs:
            return CommandResult(1, "", "slurm_load_jobs error: Invalid job id specified")
        return CommandResult(
            0, f"JobId={argv[-1]} JobState={self.jobs.get(argv[-1])}" if argv[0] == "scontrol" else "", ""
        )


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def compute(controller: Controller, tmp_path: Path) -> SlurmCompute:
    return SlurmCompute(SlurmOptions("main"), tmp_path, Slurm(controller.run))


def order(tmp_path: Path, run_id: str, attempt: int = 1) -> WorkOrder:
    folder = tmp_path / run_id
    folder.mkdir(exist_ok=True)
    return WorkOrder(run_id=run_id, folder=str(folder), argv=("true",), variables={}, attempt=attempt)


def agent_status(compute: SlurmCompute, handle: Handle) -> object:
    return compute.status([handle]).get(handle)


def test_a_reused_job_id_is_a_new_job(
    compute: SlurmCompute, controller: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.compute.slurm.squeue._INTERVAL_S", (0.0, 0.0))
    monkeypatch.setattr("runyard.compute.slurm.squeue._RESPONSE_FACTOR", 0)
    compute._poller.poll_soon()
    first = compute.start(order(tmp_path, "first"))
    assert agent_status(compute, first) is None  # it has ended already
    controller.jobs = {"7": "RUNNING"}
    second = compute.start(order(tmp_path, "second"))
    assert agent_status(compute, second) is not None


def test_a_job_that_ended_between_two_polls_is_not_waiting(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    agent_status(compute, compute.start(order(tmp_path, "earlier")))  # this listing is cached
    controller.next = "8"
    handle = compute.start(order(tmp_path, "short"))
    write_last_event(handle)
    assert agent_status(compute, handle) is None


def test_a_completed_job_is_alive_until_its_last_event_is_visible(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    handle = compute.start(order(tmp_path, "late"))
    controller.jobs = {"7": "COMPLETED"}
    assert agent_status(compute, handle) is not None
    write_last_event(handle)
    assert agent_status(compute, handle) is None


def test_a_run_canceled_during_its_submission_is_stopped(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    canceled = order(tmp_path, "canceled")
    handle = Handle("canceled", canceled.folder)
    controller.during_sbatch = lambda: compute.stop(handle)
    compute.start(canceled)
    wait_until(lambda: "7" in controller.canceled, "Slurm cancels it")


def test_a_job_whose_submission_timed_out_is_found(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    def time_out() -> None:
        controller.jobs = {"7": "PENDING"}
        raise SlurmUnavailable("sbatch did not respond within 20 s")

    controller.during_sbatch = time_out
    handle = compute.start(order(tmp_path, "slow"))
    assert JobRecord(RunFolder(tmp_path / "slow")).job_id == "7"
    assert agent_status(compute, handle) is not None


class LoginNode(Host):
    """The job has ended; the agent's last event is transferred only on request."""

    def __init__(self, tmp_path: Path, controller: Controller) -> None:
        super().__init__(Address("login"), home=tmp_path, kit=tmp_path)
        self._controller, self.is_unreachable = controller, False
        self.handle = Handle("", "")

    def follow(self, run_id: str, run: FollowedRun) -> None:
        """Transfer nothing."""

    def call(self, operation: str, **arguments: Any) -> Any:
        if operation == "run_command":
            return vars(self._controller.run(arguments["argv"]))
        if self.is_unreachable:
            raise ComputeTargetException("the connection to login was lost", transient=True)
        assert operation == "send_all"
        write_last_event(self.handle)
        return True


def test_a_job_behind_a_login_node_is_alive_until_its_last_event_is_received(
    controller: Controller, tmp_path: Path
) -> None:
    host = LoginNode(tmp_path, controller)
    compute = LoginNodeCompute(SlurmOptions("main", login="login"), host, kit=tmp_path)
    host.handle = handle = Handle("far", str(tmp_path / "far"))
    record = JobRecord(RunFolder(tmp_path / "far"))
    record.write_before_submission(order(tmp_path, "far"), "", "far-1")
    record.write_job_id("far-1", "7")
    compute.mirror.write_location(tmp_path / "far", 1, ["login"], {})
    host.is_unreachable = True
    assert compute.status([handle]) == {handle: AgentStatus()}
    host.is_unreachable = False
    assert compute.status([handle]) == {}
    assert record.has_ended


def write_last_event(handle: Handle) -> None:
    event = {"event": "script_ended", "attempt": 1, "end": {}}
    RunFolder(Path(handle.folder)).events.write_text(json.dumps(event) + "\n")
