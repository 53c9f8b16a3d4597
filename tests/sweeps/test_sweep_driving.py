"""The sweep driver under failures, with children that exist only in the store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runyard.context.journal import Journal
from runyard.errors import HyperDriveConfigException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.spec.json import to_json
from runyard.spec.run import RunSpec
from runyard.spec.sweep import MAXIMIZE, RANDOM, Policy, Sampling, SweepSpec, Trial
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps import driver as driver_module
from runyard.sweeps import sweep as sweep_module
from runyard.sweeps.child_runs import child_arguments
from runyard.sweeps.driver import SweepDriver
from runyard.sweeps.submit import submit_sweep
from runyard.sweeps.sweep import Sweep
from runyard.tracking.ingest import ingest
from runyard.wire.runs import SubmitRun
from runyard.wire.sweeps import SubmitSweep
from runyard.yard.daemon import Yard
from support import a_home, eventually, store_script, unlocked

BOTH = ("rungs_0", "rungs_1")


class FakeYard:
    """A yard that is not running: sweeps are submitted, children are admitted and never started."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor, self.runs = conductor, conductor.components.runs
        self.store = SweepStore(conductor.components.database)
        self.snapshot_id = store_script(conductor.components.snapshots)
        self.submission_error: Callable[[SubmitRun], Exception | None] = lambda request: None

    def request(self, sweep_id: str, **overrides: Any) -> SubmitSweep:
        spec = {
            "sampling": Sampling(RANDOM, {"x": ["uniform", [0, 1]]}),
            "primary_metric": "score",
            "goal": MAXIMIZE,
            "max_total_runs": 2,
            "max_concurrent_runs": 2,
            "child": to_json(RunSpec("train.py")),
            **overrides,
        }
        return SubmitSweep(sweep_id, "trouble", to_json(SweepSpec(**spec)), self.snapshot_id)

    def submit(self, sweep_id: str, **overrides: Any) -> None:
        submit_sweep(self.conductor, self.store, self.request(sweep_id, **overrides))

    def admit(self, conductor: Conductor, request: SubmitRun, *, is_checked: bool) -> RunRecord:
        assert is_checked
        error = self.submission_error(request)
        if error is not None:
            raise error
        record = RunRecord(request.run_id, "trouble", Life(managed=False), 0.0, parent_id=request.parent_id)
        conductor.components.folder(request.run_id).logs.mkdir(parents=True)
        return conductor.admit(record, on.Opened(), {}, {})

    def sweep_with_poor_child(self, sweep_id: str) -> Sweep:
        """A sweep of two children that have reported; the second is to be stopped at the next poll."""
        self.submit(sweep_id, policy=Policy("Bandit", slack_amount=0.1))
        sweep = Sweep(self.conductor, self.store, sweep_id)
        sweep.recover()
        sweep.advance(set())
        for number in (0, 1):
            Journal(self.conductor.components.folder(f"{sweep_id}_{number}").journal).log("score", 1.0 - number)
        return sweep

    def state(self, run_id: str) -> RunState:
        return self.runs.load(run_id).life.state

    def is_running(self, run_id: str) -> bool:
        return self.runs.has(run_id) and self.state(run_id) is RunState.RUNNING

    def end(self, run_id: str) -> None:
        self.conductor.post(run_id, on.MarkedComplete())

    def wait_for(self, sweep_id: str, state: RunState) -> None:
        eventually(lambda: self.state(sweep_id) is state, f"{sweep_id} is {state.value}", 20)


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeYard]:
    with a_home() as folder:
        umask = os.umask(0o077)
        os.umask(umask)
        daemon = Yard(folder, unlocked(folder), idle_s=60)
        os.umask(umask)
        yard = FakeYard(daemon._conductor)
        yard.conductor.on_change.clear()  # the daemon's driver is not started
        monkeypatch.setattr(sweep_module, "submit", yard.admit)
        yield yard
        yard.conductor.close()
        yard.conductor.components.database.close()


@pytest.fixture
def driver(yard: FakeYard, monkeypatch: pytest.MonkeyPatch) -> Iterator[SweepDriver]:
    monkeypatch.setattr(driver_module, "_POLL_S", 0.05)
    monkeypatch.setattr(driver_module, "_IDLE_S", 0.05)
    driver = SweepDriver(yard.conductor, yard.store)
    yield driver
    driver.stop()
    driver.join()


def test_a_child_that_cannot_be_submitted_fails_only_its_sweep(yard: FakeYard, driver: SweepDriver) -> None:
    outage = UserErrorException("the datastore does not answer")
    yard.submission_error = lambda request: outage if request.run_id == "bad_1" else None
    yard.submit("bad")
    yard.submit("good")
    driver.start()
    yard.wait_for("bad", RunState.FAILED)
    end = yard.runs.load("bad").life.end
    assert end is not None
    assert end.message == "the datastore does not answer"
    assert [trial.state for trial in yard.store.trials("bad")] == ["Canceled", "Canceled"]
    eventually(lambda: yard.is_running("good_1"), "the other sweep has its children")
    yard.end("good_0")
    yard.end("good_1")
    yard.wait_for("good", RunState.COMPLETED)
    eventually(lambda: yard.store.active() == [], "both sweeps are concluded")


def test_a_child_that_cannot_be_submitted_after_a_restart_fails_its_sweep(yard: FakeYard, driver: SweepDriver) -> None:
    yard.submit("bad")
    yard.store.add_trial("bad", Trial(0, "bad_0", {"x": 0.5}))
    yard.submission_error = lambda request: UserErrorException("the target is gone")
    driver.start()
    yard.wait_for("bad", RunState.FAILED)
    assert driver.is_alive()


def test_a_sweep_is_driven_after_its_interrupted_submission_is_repeated(
    yard: FakeYard, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(yard.conductor, "admit", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            yard.submit("cut")
    yard.submit("other")
    driver.start()
    eventually(lambda: yard.is_running("other_0"), "the driver has loaded the stored sweeps")
    yard.submit("cut")
    driver.add("cut")
    eventually(lambda: yard.is_running("cut_1"), "the sweep has its children")


def test_a_childs_result_is_not_lost_when_the_disk_was_full(
    yard: FakeYard, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_trials, errors = yard.store.save_trials, [OSError(errno.ENOSPC, "No space left on device")] * 3

    def save(sweep_id: str, trials: list[Trial]) -> None:
        if errors:
            raise errors.pop()
        save_trials(sweep_id, trials)

    monkeypatch.setattr(yard.store, "save_trials", save)
    yard.submit("tight")
    driver.start()
    eventually(lambda: yard.is_running("tight_1"), "the sweep has its children")
    yard.end("tight_0")
    yard.end("tight_1")
    yard.wait_for("tight", RunState.COMPLETED)
    assert [trial.state for trial in yard.store.trials("tight")] == ["Completed", "Completed"]


def test_reports_not_judged_before_a_restart_are_judged_after_it(yard: FakeYard) -> None:
    policy = Policy("Bandit", slack_amount=0.1, evaluation_interval=2)
    yard.submit("rungs", policy=policy)
    before = Sweep(yard.conductor, yard.store, "rungs")
    before.recover()
    before.advance(set())
    folders = {number: yard.conductor.components.folder(f"rungs_{number}").journal for number in (0, 1)}
    journals = {number: Journal(folder) for number, folder in folders.items()}
    journals[0].log("score", 1.0)
    journals[1].log("score", 0.0)
    before.advance(set(), BOTH)
    journals[0].log("score", 1.0)
    journals[1].log("score", 0.0)
    for number, folder in folders.items():  # a client reads the metrics, then the yard is killed
        ingest(yard.conductor.components.database, f"rungs_{number}", folder)
    sweep = Sweep(yard.conductor, yard.store, "rungs")
    sweep.recover()
    sweep.advance(set(), BOTH)
    assert "report 2" in yard.store.trials("rungs")[1].stopped


def test_an_early_stop_that_was_not_sent_before_a_restart_is_sent_after_it(
    yard: FakeYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = yard.sweep_with_poor_child("rungs")
    with monkeypatch.context() as killed:
        killed.setattr(yard.conductor, "post", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            before.advance(set(), BOTH)
    sweep = Sweep(yard.conductor, yard.store, "rungs")
    sweep.recover()
    end = yard.runs.load("rungs_1").life.end
    assert end is not None
    assert end.message.startswith("stopped early by Bandit at report 1")
    assert yard.is_running("rungs_0")


def test_a_child_that_completed_before_its_early_stop_is_not_marked_stopped(yard: FakeYard) -> None:
    sweep = yard.sweep_with_poor_child("rungs")
    yard.end("rungs_1")  # not yet processed when the reports are judged
    sweep.advance(set(), BOTH)
    eventually(lambda: yard.state("rungs_1") is RunState.COMPLETED, "the child has completed")
    sweep.advance({"rungs_1"})
    trial = yard.store.trials("rungs")[1]
    assert (trial.state, trial.stopped, trial.best) == ("Completed", "", 0.0)


def test_a_sweep_that_cannot_be_loaded_fails_once_and_its_children_are_canceled(
    yard: FakeYard, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.submit("broken")
    sweep = Sweep(yard.conductor, yard.store, "broken")
    sweep.recover()
    sweep.advance(set())
    calls = []

    def create_sampler(*args: Any) -> Any:
        calls.append(args)
        raise ValueError("a seed is too large")

    monkeypatch.setattr(sweep_module, "create_sampler", create_sampler)
    driver.start()
    yard.wait_for("broken", RunState.FAILED)
    eventually(lambda: yard.store.active() == [], "the sweep is concluded")
    eventually(lambda: yard.state("broken_1") is RunState.CANCELED, "its children are canceled")
    assert driver.is_alive()
    assert len(calls) == 1


def test_a_large_sweep_processes_its_cancellation_while_proposing(yard: FakeYard) -> None:
    yard.submit("long", max_total_runs=500, max_concurrent_runs=500)
    sweep = Sweep(yard.conductor, yard.store, "long")
    sweep.recover()
    assert not sweep.advance(set())
    assert sweep.may_propose
    proposed = len(yard.store.trials("long"))
    assert proposed < 50
    yard.conductor.post("long", on.CancelRequested())
    sweep.advance(set())
    assert not sweep.may_propose
    assert len(yard.store.trials("long")) == proposed


def test_a_large_sweep_does_not_starve_others(yard: FakeYard, driver: SweepDriver) -> None:
    yard.submit("long", max_total_runs=90, max_concurrent_runs=90)
    yard.submit("short", max_total_runs=1, max_concurrent_runs=1)
    driver.start()
    eventually(lambda: len(yard.store.trials("long")) == 90, "all are proposed")
    numbers = {run_id: yard.runs.load(run_id).number for run_id in ("short_0", "long_60")}
    assert numbers["short_0"] < numbers["long_60"]


def test_a_decided_end_survives_a_restart(yard: FakeYard) -> None:
    yard.submit("failing", max_total_runs=10, max_concurrent_runs=4, most_failures_in_a_row=2)
    before = Sweep(yard.conductor, yard.store, "failing")
    before.recover()
    before.advance(set())
    for run_id in ("failing_0", "failing_1"):
        yard.conductor.post(run_id, on.MarkedFailed(End(EndReason.SCRIPT_FAILED, "bad lr")))
        eventually(lambda run_id=run_id: yard.state(run_id) is RunState.FAILED, "it has failed")
    before.advance({"failing_0", "failing_1"})
    sweep = Sweep(yard.conductor, yard.store, "failing")
    sweep.recover()
    sweep.advance(set())
    assert not sweep.may_propose
    assert len(yard.store.trials("failing")) == 4
    end = yard.runs.load("failing").life.end
    assert end is not None
    assert end.message.startswith("2 children in a row failed; the last one, failing_1: bad lr")


def test_a_sweep_completes_when_some_children_completed_and_the_last_failed(
    yard: FakeYard, driver: SweepDriver
) -> None:
    yard.submit("mixed", max_total_runs=3, max_concurrent_runs=3, most_failures_in_a_row=2)
    driver.start()
    eventually(lambda: yard.is_running("mixed_2"), "the sweep has its children")
    yard.end("mixed_0")
    for run_id in ("mixed_1", "mixed_2"):
        yard.conductor.post(run_id, on.MarkedFailed(End(EndReason.SCRIPT_FAILED, "bad lr")))
    yard.wait_for("mixed", RunState.COMPLETED)


def test_an_ending_sweep_proposes_no_children(yard: FakeYard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yard.conductor, "_perform", lambda record, action: None)  # it is never finalized
    yard.submit("over")
    yard.conductor.post("over", on.ChildrenEnded(End(EndReason.CANCELED, "canceled")))
    assert yard.state("over") is RunState.FINALIZING
    sweep = Sweep(yard.conductor, yard.store, "over")
    sweep.recover()
    assert sweep.advance(set(), ())
    assert yard.store.trials("over") == []


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Policy("Bandits", slack_amount=1.0), "unknown early termination policy 'Bandits'"),
        (Policy("MedianStopping", evaluation_interval=0), "evaluation_interval"),
        (Policy("Hyperband", reduction_factor=1), "reduction_factor"),
        (Policy("Bandit"), "slack_factor"),
    ],
)
def test_an_invalid_policy_is_rejected(yard: FakeYard, policy: Policy, message: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=message):
        yard.submit("wrong", policy=policy)
    assert yard.store.load("wrong") is None


@pytest.mark.parametrize(
    ("arguments", "remaining"),
    [
        (["--lr=0.1", "data.csv"], ["data.csv"]),
        (["--lr", "0.1", "--out", "x"], ["--out", "x"]),
        (["--lr", "0.1", "0.2", "--lr-decay=0.5"], ["--lr-decay=0.5"]),
    ],
)
def test_only_varied_arguments_are_replaced(arguments: list[str], remaining: list[str]) -> None:
    assert child_arguments(arguments, {"--lr": 0.3}) == [*remaining, "--lr", "0.3"]
