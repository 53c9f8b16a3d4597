"""What the yard remembers of jobs must not mislead it: Slurm's answers are written down here, and need no Slurm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from runyard.compute.base import Handle
from runyard.compute.slurm.client import Answer, Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.options import SlurmOptions
from runyard.launch.order import WorkOrder
from runyard.spec.folder import RunFolder


class Controller:
    """Gives every job the number ``next``, and knows the states in ``jobs``."""

    def __init__(self) -> None:
        self.next, self.jobs = "7", dict[str, str]()

    def call(self, words: Sequence[str]) -> Answer:
        if words[0] == "sbatch":
            return Answer(0, self.next, "")
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
    monkeypatch.setattr("runyard.compute.slurm.line._PACE_S", (0.0, 0.0))
    monkeypatch.setattr("runyard.compute.slurm.line._SHARE", 0)
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
    folder = RunFolder(tmp_path / "short")
    folder.events.write_text(json.dumps({"event": "script_ended", "attempt": 1, "end": {}}) + "\n")
    assert seen(compute, handle) is None
