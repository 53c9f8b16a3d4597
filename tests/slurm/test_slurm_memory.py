"""What the yard remembers of jobs must not mislead it: Slurm's answers are written down here, and need no Slurm."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.compute.base import AgentStatus, Handle
from runyard.compute.local.compute import LocalCompute
from runyard.compute.slurm.client import Answer, Slurm, SlurmSilent
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.login_node import LoginCompute, LoginHost
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.ssh.compute import write_place
from runyard.compute.ssh.host import Followed, Hooks
from runyard.compute.ssh.openssh import Address
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder
from runyard.spec.folder import RunFolder
from runyard.testing.compute import wait_until


class Controller:
    """Gives every job the number ``next``, and knows the states in ``jobs``."""

    def __init__(self) -> None:
        self.next, self.jobs = "7", dict[str, str]()
        self.canceled: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None  # happens while sbatch is at work

    def call(self, words: Sequence[str]) -> Answer:
        if words[0] == "sbatch":
            self.meanwhile()
            return Answer(0, self.next, "")
        if words[0] == "scancel":
            self.canceled.append(words[-1])
        if words[0] == "squeue" and "--states=all" in words:
            return Answer(0, "".join(f"{number}\n" for number in self.jobs), "")
        if words[0] == "squeue":
            return Answer(0, "".join(f"{number}|{state}|None\n" for number, state in self.jobs.items()), "")
        if words[0] == "scontrol" and words[-1] not in self.jobs:
            return Answer(1, "", "slurm_load_jobs error: Invalid job id specified")
        return Answer(0, f"JobId={words[-1]} JobState={self.jobs.get(words[-1])}" if words[0] == "scontrol" else "", "")


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def compute(controller: Controller, tmp_path: Path) -> SlurmCompute:
    return SlurmCompute(SlurmOptions("main"), tmp_path, Slurm(controller.call))


def order(tmp_path: Path, run_id: str, attempt: int = 1) -> WorkOrder:
    folder = tmp_path / run_id
    folder.mkdir(exist_ok=True)
    return WorkOrder(run_id=run_id, folder=str(folder), argv=("true",), variables={}, attempt=attempt)


def seen(compute: SlurmCompute, handle: Handle) -> object:
    return compute.status([handle]).get(handle)


def test_a_number_that_slurm_gives_again_is_another_job(
    compute: SlurmCompute, controller: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.compute.slurm.squeue._PACE_S", (0.0, 0.0))
    monkeypatch.setattr("runyard.compute.slurm.squeue._SHARE", 0)
    compute._line.hurry()
    first = compute.start(order(tmp_path, "first"))
    assert seen(compute, first) is None  # it was there for a moment only
    controller.jobs = {"7": "RUNNING"}
    second = compute.start(order(tmp_path, "second"))
    assert seen(compute, second) is not None


def test_a_job_that_came_and_went_between_two_looks_does_not_wait(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    seen(compute, compute.start(order(tmp_path, "earlier")))  # the look that is remembered
    controller.next = "8"
    handle = compute.start(order(tmp_path, "short"))
    say_last_word(handle)
    assert seen(compute, handle) is None


def test_a_job_that_completed_is_not_given_up_before_its_last_word_is_seen(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    handle = compute.start(order(tmp_path, "late"))
    controller.jobs = {"7": "COMPLETED"}
    assert seen(compute, handle) is not None
    say_last_word(handle)
    assert seen(compute, handle) is None


def test_a_run_that_is_canceled_while_it_is_submitted_is_taken_back(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    wanted = order(tmp_path, "unwanted")
    handle = Handle("unwanted", wanted.folder)
    controller.meanwhile = lambda: compute.stop(handle)
    compute.start(wanted)
    wait_until(lambda: "7" in controller.canceled, "Slurm is told")


def test_a_job_whose_submission_was_answered_too_late_is_found(
    compute: SlurmCompute, controller: Controller, tmp_path: Path
) -> None:
    def too_late() -> None:
        controller.jobs = {"7": "PENDING"}
        raise SlurmSilent("sbatch did not answer within 20 s")

    controller.meanwhile = too_late
    handle = compute.start(order(tmp_path, "slow"))
    assert JobRecord(RunFolder(tmp_path / "slow")).job_id == "7"
    assert seen(compute, handle) is not None


class LoginNode(LoginHost):
    """Its Slurm says that the job has ended; what the agent said there is only here once somebody has asked for it."""

    def __init__(self, tmp_path: Path, controller: Controller) -> None:
        hooks = Hooks(news=lambda run: None, say=lambda run, text: None, back=lambda: None)
        super().__init__(Address("login"), home=tmp_path, kit=tmp_path, hooks=hooks)
        self._controller, self.is_away = controller, False
        self.handle = Handle("", "")

    def follow(self, run_id: str, followed: Followed) -> None:
        """Nothing comes by itself."""

    def call(self, do: str, **fields: Any) -> Any:
        if do == "run":
            answer = self._controller.call(fields["argv"])
            return {"code": answer.code, "out": answer.out, "err": answer.err}
        if self.is_away:
            raise ComputeTargetException("the connection to login was lost", transient=True)
        assert do == "catch_up"
        say_last_word(self.handle)
        return True


def test_a_job_behind_a_login_node_has_ended_only_when_its_last_word_is_here(
    controller: Controller, tmp_path: Path
) -> None:
    host = LoginNode(tmp_path, controller)
    far = LoginCompute(SlurmOptions("main", login="login"), host, kit=tmp_path, local=LocalCompute(tmp_path))
    host.handle = handle = Handle("far", str(tmp_path / "far"))
    record = JobRecord(RunFolder(tmp_path / "far"))
    record.announce(order(tmp_path, "far"), "", "far-1")
    record.submitted("far-1", "7")
    write_place(tmp_path / "far", {"attempt": 1, "hosts": ["login"], "bases": {}})
    host.is_away = True
    assert far.status([handle]) == {handle: AgentStatus()}
    host.is_away = False
    assert far.status([handle]) == {}
    assert record.has_last_word


def say_last_word(handle: Handle) -> None:
    said = {"event": "script_ended", "attempt": 1, "end": {}}
    RunFolder(Path(handle.folder)).events.write_text(json.dumps(said) + "\n")
