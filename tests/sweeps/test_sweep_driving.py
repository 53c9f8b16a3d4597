"""Sweeps that meet with trouble: in the components of a yard, with children that only stand in the store."""

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
from runyard.snapshots.manifest import Manifest
from runyard.spec.json import to_json
from runyard.spec.run import RunSpec
from runyard.spec.sweep import MAXIMIZE, RANDOM, Policy, Sampling, SweepSpec, Trial
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps import driver as driving
from runyard.sweeps import sweep as one_sweep
from runyard.sweeps.child_runs import child_arguments
from runyard.sweeps.driver import SweepDriver
from runyard.sweeps.submit import submit_sweep
from runyard.sweeps.sweep import Sweep
from runyard.tracking.ingest import ingest
from runyard.wire.runs import SubmitRun
from runyard.wire.sweeps import SubmitSweep
from runyard.yard.daemon import Yard
from support import a_home, eventually

BOTH = ("rungs_0", "rungs_1")


class Desk:
    """A yard that is not open: sweeps are taken in, children are admitted and never started."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor, self.runs = conductor, conductor.components.runs
        self.store = SweepStore(conductor.components.database)
        self.snapshot_id = conductor.components.snapshots.add(Manifest(()).to_bytes())
        self.refusal: Callable[[SubmitRun], Exception | None] = lambda request: None

    def request(self, sweep_id: str, **given: Any) -> SubmitSweep:
        spec = {
            "sampling": Sampling(RANDOM, {"x": ["uniform", [0, 1]]}),
            "primary_metric": "score",
            "goal": MAXIMIZE,
            "max_total_runs": 2,
            "max_concurrent_runs": 2,
            "child": to_json(RunSpec("train.py")),
            **given,
        }
        return SubmitSweep(sweep_id, "trouble", to_json(SweepSpec(**spec)), self.snapshot_id)

    def take_in(self, sweep_id: str, **given: Any) -> None:
        submit_sweep(self.conductor, self.store, self.request(sweep_id, **given))

    def admit(self, conductor: Conductor, request: SubmitRun, *, is_checked: bool) -> RunRecord:
        assert is_checked
        refused = self.refusal(request)
        if refused is not None:
            raise refused
        record = RunRecord(request.run_id, "trouble", Life(managed=False), 0.0, parent_id=request.parent_id)
        conductor.components.folder(request.run_id).logs.mkdir(parents=True)
        return conductor.admit(record, on.Opened(), {}, {})

    def with_a_bad_child(self, sweep_id: str) -> Sweep:
        """Of two that have reported, the second is to be stopped at the next look."""
        self.take_in(sweep_id, policy=Policy("Bandit", slack_amount=0.1))
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

    def ends(self, sweep_id: str, state: RunState) -> None:
        eventually(lambda: self.state(sweep_id) is state, f"{sweep_id} is {state.value}", 20)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with a_home() as folder:
        umask = os.umask(0o077)
        os.umask(umask)
        yard = Yard(folder, idle_s=60)
        os.umask(umask)
        desk = Desk(yard._conductor)
        desk.conductor.on_change.clear()  # the yard's own driver is not started
        monkeypatch.setattr(one_sweep, "submit", desk.admit)
        yield desk
        desk.conductor.close()
        desk.conductor.components.database.close()


@pytest.fixture
def driver(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[SweepDriver]:
    monkeypatch.setattr(driving, "_LOOK_S", 0.05)
    monkeypatch.setattr(driving, "_IDLE_S", 0.05)
    driver = SweepDriver(desk.conductor, desk.store)
    yield driver
    driver.stop()
    driver.join()


def test_a_child_that_cannot_be_submitted_fails_its_sweep_and_no_other(desk: Desk, driver: SweepDriver) -> None:
    outage = UserErrorException("the datastore does not answer")
    desk.refusal = lambda request: outage if request.run_id == "bad_1" else None
    desk.take_in("bad")
    desk.take_in("good")
    driver.start()
    desk.ends("bad", RunState.FAILED)
    end = desk.runs.load("bad").life.end
    assert end is not None
    assert end.message == "the datastore does not answer"
    assert [trial.state for trial in desk.store.trials("bad")] == ["Canceled", "Canceled"]
    eventually(lambda: desk.is_running("good_1"), "the other sweep has its children")
    desk.end("good_0")
    desk.end("good_1")
    desk.ends("good", RunState.COMPLETED)
    eventually(lambda: desk.store.active() == [], "both have had their last word")


def test_a_child_that_a_former_yard_could_not_submit_does_not_stop_the_next_one(
    desk: Desk, driver: SweepDriver
) -> None:
    desk.take_in("bad")
    desk.store.add_trial("bad", Trial(0, "bad_0", {"x": 0.5}))
    desk.refusal = lambda request: UserErrorException("the target is gone")
    driver.start()
    desk.ends("bad", RunState.FAILED)
    assert driver.is_alive()


def test_a_sweep_whose_submission_was_cut_off_is_driven_when_it_is_sent_again(
    desk: Desk, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(desk.conductor, "admit", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.take_in("cut")
    desk.take_in("other")
    driver.start()
    eventually(lambda: desk.is_running("other_0"), "the driver has looked at what it found")
    desk.take_in("cut")
    driver.add("cut")
    eventually(lambda: desk.is_running("cut_1"), "the sweep has its children")


def test_what_a_child_brought_is_not_lost_when_the_disk_was_full(
    desk: Desk, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, full = desk.store.save_trials, [OSError(errno.ENOSPC, "No space left on device")] * 3

    def save(sweep_id: str, trials: list[Trial]) -> None:
        if full:
            raise full.pop()
        keep(sweep_id, trials)

    monkeypatch.setattr(desk.store, "save_trials", save)
    desk.take_in("tight")
    driver.start()
    eventually(lambda: desk.is_running("tight_1"), "the sweep has its children")
    desk.end("tight_0")
    desk.end("tight_1")
    desk.ends("tight", RunState.COMPLETED)
    assert [trial.state for trial in desk.store.trials("tight")] == ["Completed", "Completed"]


def test_reports_that_a_former_yard_has_not_judged_are_judged(desk: Desk) -> None:
    policy = Policy("Bandit", slack_amount=0.1, evaluation_interval=2)
    desk.take_in("rungs", policy=policy)
    former = Sweep(desk.conductor, desk.store, "rungs")
    former.recover()
    former.advance(set())
    folders = {number: desk.conductor.components.folder(f"rungs_{number}").journal for number in (0, 1)}
    journals = {number: Journal(folder) for number, folder in folders.items()}
    journals[0].log("score", 1.0)
    journals[1].log("score", 0.0)
    former.advance(set(), BOTH)
    journals[0].log("score", 1.0)
    journals[1].log("score", 0.0)
    for number, folder in folders.items():  # somebody looks at the metrics, and then the yard is killed
        ingest(desk.conductor.components.database, f"rungs_{number}", folder)
    sweep = Sweep(desk.conductor, desk.store, "rungs")
    sweep.recover()
    sweep.advance(set(), BOTH)
    assert "report 2" in desk.store.trials("rungs")[1].stopped


def test_a_child_whose_stop_a_killed_yard_did_not_tell_is_told_by_the_next_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = desk.with_a_bad_child("rungs")
    with monkeypatch.context() as killed:
        killed.setattr(desk.conductor, "post", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            former.advance(set(), BOTH)
    sweep = Sweep(desk.conductor, desk.store, "rungs")
    sweep.recover()
    end = desk.runs.load("rungs_1").life.end
    assert end is not None
    assert end.message.startswith("stopped early by Bandit at report 1")
    assert desk.is_running("rungs_0")


def test_a_child_that_was_through_before_it_was_told_to_stop_was_not_stopped(desk: Desk) -> None:
    sweep = desk.with_a_bad_child("rungs")
    desk.end("rungs_1")  # and nobody has heard of it when the reports are looked at
    sweep.advance(set(), BOTH)
    eventually(lambda: desk.state("rungs_1") is RunState.COMPLETED, "its end is known")
    sweep.advance({"rungs_1"})
    found = desk.store.trials("rungs")[1]
    assert (found.state, found.stopped, found.best) == ("Completed", "", 0.0)


def test_a_sweep_that_cannot_be_made_fails_once_and_its_children_are_ended(
    desk: Desk, driver: SweepDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.take_in("broken")
    sweep = Sweep(desk.conductor, desk.store, "broken")
    sweep.recover()
    sweep.advance(set())
    tried = []

    def create_sampler(*given: Any) -> Any:
        tried.append(given)
        raise ValueError("a seed is too large")

    monkeypatch.setattr(one_sweep, "sampler_of", create_sampler)
    driver.start()
    desk.ends("broken", RunState.FAILED)
    eventually(lambda: desk.store.active() == [], "it has had its last word")
    eventually(lambda: desk.state("broken_1") is RunState.CANCELED, "its children are ended")
    assert driver.is_alive()
    assert len(tried) == 1


def test_a_long_sweep_hears_of_its_cancellation_while_it_proposes(desk: Desk) -> None:
    desk.take_in("long", max_total_runs=500, max_concurrent_runs=500)
    sweep = Sweep(desk.conductor, desk.store, "long")
    sweep.recover()
    assert not sweep.advance(set())
    assert sweep.may_propose
    proposed = len(desk.store.trials("long"))
    assert proposed < 50
    desk.conductor.post("long", on.CancelRequested())
    sweep.advance(set())
    assert not sweep.may_propose
    assert len(desk.store.trials("long")) == proposed


def test_a_long_sweep_gives_others_their_turn_and_comes_to_its_last_child(desk: Desk, driver: SweepDriver) -> None:
    desk.take_in("long", max_total_runs=90, max_concurrent_runs=90)
    desk.take_in("short", max_total_runs=1, max_concurrent_runs=1)
    driver.start()
    eventually(lambda: len(desk.store.trials("long")) == 90, "all are proposed")
    numbers = {run_id: desk.runs.load(run_id).number for run_id in ("short_0", "long_60")}
    assert numbers["short_0"] < numbers["long_60"]


def test_an_end_that_was_decided_is_known_to_the_next_yard(desk: Desk) -> None:
    desk.take_in("failing", max_total_runs=10, max_concurrent_runs=4, most_failures_in_a_row=2)
    former = Sweep(desk.conductor, desk.store, "failing")
    former.recover()
    former.advance(set())
    for run_id in ("failing_0", "failing_1"):
        desk.conductor.post(run_id, on.MarkedFailed(End(EndReason.SCRIPT_FAILED, "bad lr")))
        eventually(lambda run_id=run_id: desk.state(run_id) is RunState.FAILED, "it has failed")
    former.advance({"failing_0", "failing_1"})
    sweep = Sweep(desk.conductor, desk.store, "failing")
    sweep.recover()
    sweep.advance(set())
    assert not sweep.may_propose
    assert len(desk.store.trials("failing")) == 4
    end = desk.runs.load("failing").life.end
    assert end is not None
    assert end.message.startswith("2 children in a row failed; the last one, failing_1: bad lr")


def test_a_sweep_whose_last_children_failed_has_come_through_when_others_completed(
    desk: Desk, driver: SweepDriver
) -> None:
    desk.take_in("mixed", max_total_runs=3, max_concurrent_runs=3, most_failures_in_a_row=2)
    driver.start()
    eventually(lambda: desk.is_running("mixed_2"), "the sweep has its children")
    desk.end("mixed_0")
    for run_id in ("mixed_1", "mixed_2"):
        desk.conductor.post(run_id, on.MarkedFailed(End(EndReason.SCRIPT_FAILED, "bad lr")))
    desk.ends("mixed", RunState.COMPLETED)


def test_a_sweep_that_is_about_to_end_proposes_nothing_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.conductor, "_perform", lambda record, action: None)  # nobody finalizes it
    desk.take_in("over")
    desk.conductor.post("over", on.ChildrenEnded(End(EndReason.CANCELED, "canceled")))
    assert desk.state("over") is RunState.FINALIZING
    sweep = Sweep(desk.conductor, desk.store, "over")
    sweep.recover()
    assert sweep.advance(set(), ())
    assert desk.store.trials("over") == []


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy("Bandits", slack_amount=1.0), "no policy is called 'Bandits'"),
        (Policy("MedianStopping", evaluation_interval=0), "evaluation_interval"),
        (Policy("Hyperband", reduction_factor=1), "reduction_factor"),
        (Policy("Bandit"), "slack_factor"),
    ],
)
def test_a_policy_that_cannot_judge_is_refused(desk: Desk, policy: Policy, said: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=said):
        desk.take_in("wrong", policy=policy)
    assert desk.store.load("wrong") is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--lr=0.1", "data.csv"], ["data.csv"]),
        (["--lr", "0.1", "--out", "x"], ["--out", "x"]),
        (["--lr", "0.1", "0.2", "--lr-decay=0.5"], ["--lr-decay=0.5"]),
    ],
)
def test_only_what_is_varied_is_taken_from_the_arguments(given: list[str], kept: list[str]) -> None:
    assert child_arguments(given, {"--lr": 0.3}) == [*kept, "--lr", "0.3"]
