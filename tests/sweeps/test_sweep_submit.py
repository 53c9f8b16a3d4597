"""What the yard refuses when it takes a sweep in, whoever asks: nothing of it is written then."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runyard import Experiment, Workspace
from runyard.errors import HyperDriveConfigException, RunyardException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import Life
from runyard.orchestrator.conductor import Conductor
from runyard.snapshots.manifest import Manifest
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.spec.sweep import SweepSpec
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.submit import submit_sweep
from runyard.wire.sweeps import SubmitSweep
from runyard.yard.daemon import Yard
from support import a_home

BANDIT = {"name": "Bandit", "slack_factor": 0.1}
SPEC: dict[str, Any] = {
    "sampling": {"name": "Random", "space": {"x": ["uniform", [0, 1]]}, "seed": 1},
    "primary_metric": "score",
    "goal": "maximize",
    "max_total_runs": 2,
    "max_concurrent_runs": 2,
    "child": to_json(RunSpec("train.py")),
}


def sampling(name: str, expression: Any, **more: Any) -> dict[str, Any]:
    return {"sampling": {"name": name, "space": {"x": expression}, "seed": 1, **more}}


class Desk:
    """A yard that is not open: sweeps are taken in and not driven."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor, self.runs = conductor, conductor.components.runs
        self.store = SweepStore(conductor.components.database)
        self.snapshot_id = conductor.components.snapshots.add(Manifest(()).to_bytes())

    def request(self, run_id: str = "sweep", **given: Any) -> SubmitSweep:
        return SubmitSweep(run_id, "digits", {**SPEC, **given}, self.snapshot_id)

    def take_in(self, request: SubmitSweep) -> RunRecord:
        return submit_sweep(self.conductor, self.store, request)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with a_home() as folder:
        umask = os.umask(0o077)
        os.umask(umask)
        yard = Yard(folder, idle_s=60)
        os.umask(umask)
        yield Desk(yard._conductor)
        yard._conductor.close()
        yard._conductor.components.database.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (sampling("Grid", ["choice", [[{"y": ["uniform", [0, 1]]}]]]), "'y': this sampling does not support uniform"),
        (sampling("BayesianOptimization", ["loguniform", [-6, -1]]), "'x': this sampling does not support loguniform"),
        (
            sampling("BayesianOptimization", ["choice", [[{"y": ["normal", [0, 1]]}]]]),
            "'y': this sampling does not support normal",
        ),
        (sampling("BayesianOptimization", ["quniform", [0.5, 3, 1]]), "whole numbers for Bayesian sampling"),
        (sampling("Random", ["quniform", [1, 4, 10]]), "no multiple of 10 is between 1 and 4"),
        (sampling("Random", ["choice", [[{}]]]), "must have at least one parameter"),
        (sampling("Lucky", ["uniform", [0, 1]]), "no sampling is called 'Lucky'"),
        (sampling("Random", ["uniform", [0, 1]], seed=2**32), "seed must be at most 4294967295"),
        (sampling("BayesianOptimization", ["uniform", [0, 1]], seed=-1), "seed must be a whole number of at least 0"),
        (sampling("Population", ["uniform", [0, 1]], population={"size": 1}), "population_size must be a whole number"),
        ({"sampling": None}, "SweepSpec.sampling must not be null"),
        (sampling("Random", ["uniform", [0, 1]], seed=None), "SweepSpec.sampling.seed must not be null"),
        ({"max_total_runs": None}, "SweepSpec.max_total_runs must not be null"),
        ({"child": None}, "SweepSpec.child must not be null"),
        ({"resumed": [None]}, "SweepSpec.resumed must not be null"),
        ({"policy": {**BANDIT, "name": None}}, "SweepSpec.policy.name must not be null"),
        ({"max_total_runs": 1.5}, "max_total_runs must be a whole number"),
        ({"max_total_runs": 2**31}, "max_total_runs must be at most 2147483647"),
        ({"max_concurrent_runs": 2**31}, "max_concurrent_runs must be at most 2147483647"),
        ({"max_duration_minutes": 2**31}, "max_duration_minutes must be at most 2147483647"),
        ({"most_failures_in_a_row": 2**31}, "max_failures_in_a_row must be at most 2147483647"),
        ({**sampling("Sobol", ["uniform", [0, 1]]), "max_total_runs": 2**30 + 1}, "max_total_runs must be at most"),
        ({"policy": {**BANDIT, "slack_factor": -1}}, "slack_factor must not be negative, got -1"),
        ({"policy": {**BANDIT, "slack_factor": float("nan")}}, "slack_factor must be a number, not nan"),
        ({"policy": {"name": "Bandit", "slack_amount": float("inf")}}, "slack_amount must be a number, not inf"),
        ({"policy": {**BANDIT, "delay_evaluation": -5}}, "delay_evaluation must be a whole number of at least 0"),
        ({"policy": {"name": "TruncationSelection", "truncation_percentage": 500}}, "truncation_percentage can be at"),
    ],
)
def test_what_cannot_be_a_sweep_is_refused_and_not_written(desk: Desk, given: dict[str, Any], said: str) -> None:
    with pytest.raises(RunyardException, match=said):
        desk.take_in(desk.request(**given))
    assert desk.store.summaries() == []
    assert not desk.runs.has("sweep")


def test_what_the_samplings_library_refuses_is_refused_before_anything_is_written(desk: Desk) -> None:
    too_many = {f"x{place}": ["uniform", [0, 1]] for place in range(22_000)}  # dimensions of a Sobol sequence
    with pytest.raises(HyperDriveConfigException, match="Sobol sampling cannot be done as asked for: Maximum"):
        desk.take_in(desk.request(sampling={"name": "Sobol", "space": too_many, "seed": 1}))
    assert desk.store.summaries() == []


@pytest.mark.parametrize("name", ["Random", "Grid", "BayesianOptimization", "Sobol"])
def test_a_sweep_of_very_many_children_is_taken_in_at_once(desk: Desk, name: str) -> None:
    space = {f"x{place}": ["choice", [list(range(100))]] for place in range(5)}
    wanted = {"name": name, "space": space, "seed": 2**32 - 1}
    assert desk.take_in(desk.request(sampling=wanted, max_total_runs=2**30)).run_id == "sweep"


def test_a_sweep_that_is_sent_again_is_the_same_sweep(desk: Desk) -> None:
    first = desk.take_in(desk.request())
    assert desk.take_in(desk.request()) == first
    assert [found["sweep_id"] for found in desk.store.summaries()] == ["sweep"]


def test_a_sweep_that_was_written_down_by_a_yard_that_died_then_is_taken_in_when_it_is_sent_again(desk: Desk) -> None:
    desk.store.add("sweep", from_json(SweepSpec, desk.request().spec))
    with pytest.raises(UserErrorException, match="'sweep' is taken: a sweep with other settings was begun"):
        desk.take_in(desk.request(max_total_runs=3))
    assert not desk.runs.has("sweep")
    assert desk.take_in(desk.request()).run_id == "sweep"


@pytest.mark.parametrize("other", [{"max_total_runs": 3}, sampling("Random", ["uniform", [0, 1]], seed=2)])
def test_another_sweep_of_the_same_id_is_refused(desk: Desk, other: dict[str, Any]) -> None:
    desk.take_in(desk.request())
    with pytest.raises(UserErrorException, match="'sweep' is taken: it is a sweep with other settings"):
        desk.take_in(desk.request(**other))
    loaded = desk.store.load("sweep")
    assert loaded is not None
    assert loaded.max_total_runs == 2


def test_a_sweep_of_other_code_or_in_another_experiment_is_another_one(desk: Desk) -> None:
    desk.take_in(desk.request())
    for other in ({"snapshot_id": "0" * 64}, {"experiment": "letters"}):
        with pytest.raises(UserErrorException, match="'sweep' is taken"):
            desk.take_in(replace(desk.request(), **other))


def test_the_id_of_a_run_cannot_be_that_of_a_sweep_and_the_run_gets_no_children(desk: Desk) -> None:
    desk.conductor.admit(RunRecord("busy", "digits", Life(managed=False), 0.0), on.Opened(), {}, {})
    with pytest.raises(UserErrorException, match="'busy' is taken: it is a run, and no sweep"):
        desk.take_in(desk.request("busy"))
    assert desk.store.summaries() == []


def test_a_null_in_a_request_is_said_to_whoever_sent_it(workspace: Workspace, experiment: Experiment) -> None:
    for lacking in ("sampling", "max_total_runs"):
        body = {"run_id": "nulls", "experiment": experiment.name, "spec": {**SPEC, lacking: None}, "snapshot_id": "0"}
        with pytest.raises(RunyardException, match=f"SweepSpec.{lacking} must not be null"):
            workspace.connection.post("/api/sweeps", body)
