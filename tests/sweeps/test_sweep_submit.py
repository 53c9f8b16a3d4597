"""Validation of submitted sweeps in the yard: nothing is written for a rejected one."""

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
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.spec.sweep import SweepSpec
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.submit import submit_sweep
from runyard.wire.sweeps import SubmitSweep
from runyard.yard.daemon import Yard
from support import a_home, store_script, unlocked

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


class SweepSubmitter:
    """Submits sweeps to a yard that is not running, so that they are never driven."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor, self.runs = conductor, conductor.components.runs
        self.store = SweepStore(conductor.components.database)
        self.snapshot_id = store_script(conductor.components.snapshots)

    def request(self, run_id: str = "sweep", **overrides: Any) -> SubmitSweep:
        return SubmitSweep(run_id, "digits", {**SPEC, **overrides}, self.snapshot_id)

    def submit(self, request: SubmitSweep) -> RunRecord:
        return submit_sweep(self.conductor, self.store, request)


@pytest.fixture
def submitter() -> Iterator[SweepSubmitter]:
    with a_home() as folder:
        umask = os.umask(0o077)
        os.umask(umask)
        yard = Yard(folder, unlocked(folder), idle_s=60)
        os.umask(umask)
        yield SweepSubmitter(yard._conductor)
        yard._conductor.close()
        yard._conductor.components.database.close()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (sampling("Grid", ["choice", [[{"y": ["uniform", [0, 1]]}]]]), "'y': a grid does not support uniform"),
        (sampling("Random", ["quniform", [1, 4, 10]]), "no multiple of 10 is between 1 and 4"),
        (sampling("Random", ["choice", [[{}]]]), "must have at least one parameter"),
        (sampling("Lucky", ["uniform", [0, 1]]), "unknown sampling 'Lucky'"),
        (sampling("Random", ["uniform", [0, 1]], seed=2**32), "seed must be at most 4294967295"),
        (sampling("BayesianOptimization", ["uniform", [0, 1]], seed=-1), "seed must be a whole number of at least 0"),
        (sampling("Population", ["uniform", [0, 1]], population={"size": 1}), "population_size must be a whole number"),
        ({"sampling": None}, "SweepSpec.sampling must be an? .*, got None"),
        (sampling("Random", ["uniform", [0, 1]], seed=None), "SweepSpec.sampling.seed must be an? .*, got None"),
        ({"max_total_runs": None}, "SweepSpec.max_total_runs must be an? .*, got None"),
        ({"child": None}, "SweepSpec.child must be an? .*, got None"),
        ({"resumed": [None]}, "SweepSpec.resumed must be an? .*, got None"),
        ({"policy": {**BANDIT, "name": None}}, "SweepSpec.policy.name must be an? .*, got None"),
        ({"max_total_runs": 1.5}, "max_total_runs must be a whole number"),
        ({"max_total_runs": 2**31}, "max_total_runs must be at most 2147483647"),
        ({"max_concurrent_runs": 2**31}, "max_concurrent_runs must be at most 2147483647"),
        ({"max_duration_minutes": 2**31}, "max_duration_minutes must be at most 2147483647"),
        ({"most_failures_in_a_row": 2**31}, "max_failures_in_a_row must be at most 2147483647"),
        ({**sampling("Sobol", ["uniform", [0, 1]]), "max_total_runs": 2**30 + 1}, "max_total_runs must be at most"),
        ({"policy": {**BANDIT, "slack_factor": -1}}, "slack_factor must not be negative, got -1"),
        ({"policy": {**BANDIT, "slack_factor": float("nan")}}, "slack_factor must be a number, got nan"),
        ({"policy": {"name": "Bandit", "slack_amount": float("inf")}}, "slack_amount must be a number, got inf"),
        ({"policy": {**BANDIT, "delay_evaluation": -5}}, "delay_evaluation must be a whole number of at least 0"),
        (
            {"policy": {"name": "TruncationSelection", "truncation_percentage": 500}},
            "truncation_percentage must be at most 99",
        ),
    ],
)
def test_an_invalid_sweep_is_rejected_and_not_written(
    submitter: SweepSubmitter, overrides: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunyardException, match=message):
        submitter.submit(submitter.request(**overrides))
    assert submitter.store.summaries() == []
    assert not submitter.runs.has("sweep")


def test_settings_rejected_by_the_sampling_library_are_not_written(submitter: SweepSubmitter) -> None:
    too_many = {f"x{n}": ["uniform", [0, 1]] for n in range(22_000)}  # dimensions of a Sobol sequence
    with pytest.raises(HyperDriveConfigException, match="Sobol sampling does not support these settings: Maximum"):
        submitter.submit(submitter.request(sampling={"name": "Sobol", "space": too_many, "seed": 1}))
    assert submitter.store.summaries() == []


@pytest.mark.parametrize("name", ["Random", "Grid", "BayesianOptimization", "Sobol"])
def test_submitting_a_very_large_sweep_is_fast(submitter: SweepSubmitter, name: str) -> None:
    space = {f"x{n}": ["choice", [list(range(100))]] for n in range(5)}
    large = {"name": name, "space": space, "seed": 2**32 - 1}
    assert submitter.submit(submitter.request(sampling=large, max_total_runs=2**30)).run_id == "sweep"


def test_submitting_the_same_sweep_twice_creates_one_sweep(submitter: SweepSubmitter) -> None:
    first = submitter.submit(submitter.request())
    assert submitter.submit(submitter.request()) == first
    assert [summary["sweep_id"] for summary in submitter.store.summaries()] == ["sweep"]


def test_an_interrupted_submission_can_be_repeated(submitter: SweepSubmitter) -> None:
    submitter.store.add("sweep", from_json(SweepSpec, submitter.request().spec))
    with pytest.raises(UserErrorException, match="'sweep' is in use: a sweep with other settings was submitted"):
        submitter.submit(submitter.request(max_total_runs=3))
    assert not submitter.runs.has("sweep")
    assert submitter.submit(submitter.request()).run_id == "sweep"


@pytest.mark.parametrize("other", [{"max_total_runs": 3}, sampling("Random", ["uniform", [0, 1]], seed=2)])
def test_a_different_sweep_with_the_same_id_is_rejected(submitter: SweepSubmitter, other: dict[str, Any]) -> None:
    submitter.submit(submitter.request())
    with pytest.raises(UserErrorException, match="'sweep' is in use: it is a sweep with different settings"):
        submitter.submit(submitter.request(**other))
    loaded = submitter.store.load("sweep")
    assert loaded is not None
    assert loaded.max_total_runs == 2


def test_the_same_id_with_another_snapshot_or_experiment_is_rejected(submitter: SweepSubmitter) -> None:
    submitter.submit(submitter.request())
    for other in ({"snapshot_id": "0" * 64}, {"experiment": "letters"}):
        with pytest.raises(UserErrorException, match="'sweep' is in use"):
            submitter.submit(replace(submitter.request(), **other))


def test_the_id_of_a_run_cannot_be_used_for_a_sweep(submitter: SweepSubmitter) -> None:
    submitter.conductor.admit(RunRecord("busy", "digits", Life(managed=False), 0.0), on.Opened(), {}, {})
    with pytest.raises(UserErrorException, match="'busy' is in use: it is a run, not a sweep"):
        submitter.submit(submitter.request("busy"))
    assert submitter.store.summaries() == []


def test_a_null_in_a_request_is_rejected(workspace: Workspace, experiment: Experiment) -> None:
    for field in ("sampling", "max_total_runs"):
        body = {"run_id": "nulls", "experiment": experiment.name, "spec": {**SPEC, field: None}, "snapshot_id": "0"}
        with pytest.raises(RunyardException, match=f"SweepSpec.{field} must be an? .*, got None"):
            workspace.connection.post("/api/sweeps", body)
