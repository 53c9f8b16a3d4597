"""Population-based training: each generation resumes from the previous one, the weakest from a better member."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.errors import HyperDriveConfigException
from runyard.hyperdrive import (
    BanditPolicy,
    HyperDriveRun,
    NoTerminationPolicy,
    PopulationParameterSampling,
    choice,
    loguniform,
    uniform,
)
from runyard.spec.sweep import POPULATION, Population, Sampling
from runyard.sweeps.population import perturb
from runyard.sweeps.sampler import Sampler
from runyard.sweeps.sampling import create_sampler
from support import eventually, stop_yard

SPACE = {"x": ["uniform", [0, 10]]}


def population(size: int = 4, *, max_children: int = 12, seed: int = 1, **more: Any) -> Sampler:
    return create_sampler(Sampling(POPULATION, SPACE, seed, Population(size, **more)), max_children, (), 1.0)


def generation(sampler: Sampler, first: int, scores: list[float | None]) -> list[tuple[Any, int | None]]:
    """Propose one child per score and report the scores; returns (values, parent) of each child."""
    children = [(sampler.ask(first + n), sampler.parent(first + n)) for n in range(len(scores))]
    for index, score in enumerate(scores):
        sampler.tell(first + index, score, completed=score is not None)
    return children


def test_the_first_generation_is_random_and_starts_from_scratch() -> None:
    children = generation(population(), 0, [1, 2, 3, 4])
    assert len({point["x"] for point, _ in children}) == 4
    assert [parent for _, parent in children] == [None] * 4


def test_good_members_continue_and_the_weakest_resumes_from_the_best_with_nearby_values() -> None:
    sampler = population(resampled=0.0)
    first = generation(sampler, 0, [0.5, 0.9, 0.1, 0.7])
    second = generation(sampler, 4, [1, 1, 1, 1])
    assert [parent for _, parent in second] == [1, 3, 0, 1]
    assert [second[rank][0] for rank in range(3)] == [first[1][0], first[3][0], first[0][0]]
    best, perturbed = first[1][0]["x"], second[3][0]["x"]
    assert perturbed == pytest.approx(best * 0.8) or perturbed == pytest.approx(min(best * 1.2, 10))


def test_a_generation_waits_for_all_members_of_the_previous_one() -> None:
    sampler = population()
    for number in range(4):
        assert sampler.ready(number)
        sampler.ask(number)
    for number in (0, 1, 3):
        sampler.tell(number, 1.0)
    assert not sampler.ready(4)
    sampler.tell(2, None)
    assert sampler.ready(4)


def test_a_member_that_failed_or_has_no_score_is_never_a_parent() -> None:
    sampler = population(replaced=0.25)
    generation(sampler, 0, [None, 0.4, None, float("nan")])
    assert {parent for _, parent in generation(sampler, 4, [1, 1, 1, 1])} == {1}


def test_the_next_generation_starts_from_scratch_if_no_member_completed() -> None:
    sampler = population()
    first = generation(sampler, 0, [None] * 4)
    second = generation(sampler, 4, [1, 2, 3, 4])
    assert [parent for _, parent in second] == [None] * 4
    assert {point["x"] for point, _ in second}.isdisjoint(point["x"] for point, _ in first)


def test_a_truncated_last_generation_keeps_the_best_members() -> None:
    sampler = population(max_children=6)
    generation(sampler, 0, [0.5, 0.9, 0.1, 0.7])
    assert [parent for _, parent in generation(sampler, 4, [1, 1])] == [1, 3]


def test_a_restored_sampler_continues_like_the_original() -> None:
    """Covers a restart of the yard."""
    first, second = population(), population()
    points = generation(first, 0, [0.5, 0.9, 0.1, 0.7])
    for number, score in enumerate([0.5, 0.9, 0.1, 0.7]):
        second.restore(number, points[number][0])
        second.tell(number, score)
    assert generation(first, 4, [1, 1, 1, 1]) == generation(second, 4, [1, 1, 1, 1])


@pytest.mark.parametrize(
    "expression",
    [
        ["uniform", [0.1, 1.0]],
        ["uniform", [-1.0, 1.0]],
        ["loguniform", [-6, -1]],
        ["quniform", [0, 100, 5]],
        ["qloguniform", [0, 5, 1]],
        ["randint", [4]],
        ["choice", [[16, 32, 64]]],
        ["choice", [["adam", "sgd"]]],
        ["choice", [[7]]],
        ["normal", [0, 1]],
        ["qnormal", [100, 20, 5]],
        ["lognormal", [0, 1]],
        ["qlognormal", [3, 1, 5]],
    ],
)
def test_perturbed_values_stay_within_their_expression(expression: Any) -> None:
    from runyard.spec.space import value_at
    from runyard.spec.space_checks import check_expression

    check_expression("x", expression)
    rng = random.Random(5)
    value, values = value_at(expression, 0.5), set()
    for _ in range(200):
        value = perturb({"x": expression}, {"x": value}, rng, 0.0)["x"]
        values.add(value)
        kind, arguments = expression
        if kind in ("uniform", "quniform"):
            assert arguments[0] <= value <= arguments[1]
        elif kind == "loguniform":
            assert 0.0024 < value < 0.368
        elif kind == "qloguniform":
            assert 1 <= value <= 148
        elif kind == "randint":
            assert value in range(4)
        elif kind == "choice":
            assert value in arguments[0]
        if kind.startswith("q"):
            assert value % arguments[-1] == 0
    assert len(values) > 1 or expression == ["choice", [[7]]]


def test_a_member_stays_in_its_nested_space() -> None:
    tree = {"model": "tree", "depth": ["choice", [[2, 4, 8]]]}
    net = {"model": "net", "units": ["choice", [[8, 16, 32]]]}
    space = {"kind": ["choice", [[tree, net]]]}
    for resampled in (0.0, 1.0):
        for n in range(20):
            point = perturb(space, {"model": "net", "units": 16}, random.Random(n), resampled)
            assert point["model"] == "net"
            assert point["units"] in (8, 16, 32)


def test_members_resumed_from_another_space_get_values_of_this_space() -> None:
    space = {"lr": ["uniform", [0.0, 1.0]], "opt": ["uniform", [1.0, 2.0]], "units": ["choice", [[8, 16]]]}
    sampler = create_sampler(Sampling(POPULATION, space, 1, Population(2, resampled=0.0)), 8, (), 1.0, resumed=2)
    sampler.restore(0, {"opt": "adam", "units": 8, "old": 3})
    sampler.restore(1, {"opt": True, "lr": 0.5})
    for number in (0, 1):
        sampler.tell(number, float(number))
    for number in (2, 3):
        point = sampler.ask(number)
        assert point is not None
        assert set(point) == {"lr", "opt", "units"}
        assert 1.0 <= point["opt"] <= 2.0
        assert point["units"] in (8, 16)
    assert (sampler.ask(2) or {})["lr"] == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population_size": 1}, "population_size must be a whole number of at least 2, got 1"),
        ({"population_size": True}, "population_size"),
        ({"population_size": 2.5}, "population_size"),
        ({"replaced": 0.6}, "replaced must be between 0 and 0.5, got 0.6"),
        ({"replaced": 0}, "replaced must be above 0"),
        ({"resample_probability": "often"}, "resample_probability must be between 0 and 1, got 'often'"),
        ({"seed": -1}, "seed"),
    ],
)
def test_invalid_population_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=message):
        PopulationParameterSampling({"--x": uniform(0, 1)}, **settings)


# with real children

Start = Callable[..., HyperDriveRun]

# `--x` is the progress of each generation; the total is saved in outputs/
TRAIN = """\
import argparse, json, pathlib
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument('--x', type=float)
parser.add_argument('--resume-from')
a = parser.parse_args()
state = {'progress': 0, 'generations': 0}
if a.resume_from:
    state = json.loads(pathlib.Path(a.resume_from, 'state.json').read_text())
state = {'progress': state['progress'] + a.x, 'generations': state['generations'] + 1}
pathlib.Path('outputs/state.json').write_text(json.dumps(state))
run = Run.get_context()
run.log('score', state['progress'])
run.log('generations', state['generations'])
"""


@pytest.mark.real
def test_children_resume_from_the_previous_generation(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(1, 10)}, 4, resample_probability=0, seed=3)
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=12, max_concurrent_runs=2)
    sweep.wait_for_completion(raise_on_error=True)
    children = sorted(sweep._sweep()["children"], key=lambda child: child["number"])
    metrics = sweep.get_metrics()
    by_id = {child["run_id"]: child for child in children}
    for child in children:
        own_metrics = metrics[child["run_id"]]
        assert own_metrics["generations"] == child["number"] // 4 + 1
        parent = by_id.get(child["resumes"])
        if child["number"] < 4:
            assert parent is None
        else:
            parent_score = metrics[parent["run_id"]]["score"]
            assert own_metrics["score"] == pytest.approx(parent_score + child["parameters"]["--x"])
    ranked = sorted(children[:4], key=lambda child: -child["best"])
    assert [child["resumes"] for child in children[4:]][:3] == [child["run_id"] for child in ranked[:3]]
    assert children[7]["resumes"] == ranked[0]["run_id"]
    best = sweep.get_best_run_by_primary_metric()
    assert best is not None
    assert best.get_metrics()["generations"] == 3
    assert f"resumed from child {ranked[0]['number']}" in _sweep_log(sweep)


@pytest.mark.real
def test_a_population_continues_after_the_yard_is_killed(sweep_of: Start, home: Path) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(1, 10)}, 2, seed=3)
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=8, max_concurrent_runs=2)
    eventually(lambda: len(sweep._sweep()["children"]) > 3, "the second generation has started", within_s=60)
    stop_yard(home, signal.SIGKILL)
    sweep.wait_for_completion(raise_on_error=True)
    generations = [metrics["generations"] for metrics in sweep.get_metrics().values()]
    assert sorted(generations) == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.real
def test_resuming_from_a_member_without_outputs_starts_from_scratch_with_a_warning(sweep_of: Start) -> None:
    script = TRAIN.replace("pathlib.Path('outputs/state.json').write_text(json.dumps(state))\n", "")
    sampling = PopulationParameterSampling({"--x": choice(1, 2)}, 2, seed=3)
    sweep = sweep_of(script, hyperparameter_sampling=sampling)
    sweep.wait_for_completion(raise_on_error=True)
    assert {metrics["generations"] for metrics in sweep.get_metrics().values()} == {1}
    assert " left no outputs to resume from; child 2 starts from scratch" in _sweep_log(sweep)
    assert {child["resumes"] for child in sweep._sweep()["children"]} == {""}
    assert sum("left no outputs" in warning["message"] for warning in sweep.get_details()["warnings"]) == 1


@pytest.mark.real
def test_members_are_ranked_by_their_last_value_not_their_best(sweep_of: Start) -> None:
    script = TRAIN.replace("run.log('generations'", "run.log('score', 0 if a.x < 3 else 1)\nrun.log('generations'")
    script = script.replace("run.log('score', state['progress'])", "run.log('score', 20 - a.x)")
    sampling = PopulationParameterSampling({"--x": choice(1, 2, 3, 4)}, 4, resample_probability=0, seed=1)
    sweep = sweep_of(script, hyperparameter_sampling=sampling, max_total_runs=8, max_concurrent_runs=2)
    sweep.wait_for_completion(raise_on_error=True)
    children = {child["run_id"]: child for child in sweep._sweep()["children"]}
    first = [child["parameters"]["--x"] for child in children.values() if child["number"] < 4]
    assert min(first) < 3 <= max(first), "the seed must yield both kinds"
    (replaced,) = [child for child in children.values() if child["number"] == 7]
    assert children[replaced["resumes"]]["parameters"]["--x"] >= 3


@pytest.mark.real
def test_a_policy_with_a_population_is_rejected(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": loguniform(-3, -1)}, 2)
    with pytest.raises(HyperDriveConfigException, match="population sampling excludes an early termination policy"):
        sweep_of(hyperparameter_sampling=sampling, policy=BanditPolicy(slack_factor=0.1))
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, policy=NoTerminationPolicy())
    assert sweep.wait_for_completion()["status"] == "Completed"


@pytest.mark.real
def test_a_population_without_a_second_generation_warns(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": choice(1, 2)}, 4)
    with pytest.warns(UserWarning, match="there is no second generation"):
        sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=4)
    sweep.wait_for_completion()


def _sweep_log(sweep: HyperDriveRun) -> str:
    return (sweep.folder / "azureml-logs" / "hyperdrive.txt").read_text()
