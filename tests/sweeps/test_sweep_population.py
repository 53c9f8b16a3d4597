"""A population: generations that go on from each other's outputs, the weakest from those of a better one."""

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


def population(size: int = 4, *, most: int = 12, seed: int = 1, **more: Any) -> Sampler:
    return create_sampler(Sampling(POPULATION, SPACE, seed, Population(size, **more)), most, (), 1.0)


def generation(sampler: Sampler, first: int, scores: list[float | None]) -> list[tuple[Any, int | None]]:
    """Proposes as many children as there are scores; their values, and whom they go on from."""
    found = [(sampler.ask(first + n), sampler.parent(first + n)) for n in range(len(scores))]
    for place, score in enumerate(scores):
        sampler.tell(first + place, score, completed=score is not None)
    return found


def test_the_first_generation_is_drawn_by_chance_and_begins_anew() -> None:
    found = generation(population(), 0, [1, 2, 3, 4])
    assert len({point["x"] for point, _ in found}) == 4
    assert [former for _, former in found] == [None] * 4


def test_the_good_ones_go_on_and_the_weakest_goes_on_from_the_best_with_values_near_its() -> None:
    sampler = population(resampled=0.0)
    first = generation(sampler, 0, [0.5, 0.9, 0.1, 0.7])
    second = generation(sampler, 4, [1, 1, 1, 1])
    assert [former for _, former in second] == [1, 3, 0, 1]
    assert [second[place][0] for place in range(3)] == [first[1][0], first[3][0], first[0][0]]
    best, moved = first[1][0]["x"], second[3][0]["x"]
    assert moved == pytest.approx(best * 0.8) or moved == pytest.approx(min(best * 1.2, 10))


def test_a_generation_waits_for_the_whole_one_before() -> None:
    sampler = population()
    for number in range(4):
        assert sampler.ready(number)
        sampler.ask(number)
    for number in (0, 1, 3):
        sampler.tell(number, 1.0)
    assert not sampler.ready(4)
    sampler.tell(2, None)
    assert sampler.ready(4)


def test_nobody_goes_on_from_a_member_that_failed_or_has_no_score() -> None:
    sampler = population(replaced=0.25)
    generation(sampler, 0, [None, 0.4, None, float("nan")])
    assert {former for _, former in generation(sampler, 4, [1, 1, 1, 1])} == {1}


def test_when_nobody_is_left_the_next_generation_begins_anew() -> None:
    sampler = population()
    first = generation(sampler, 0, [None] * 4)
    second = generation(sampler, 4, [1, 2, 3, 4])
    assert [former for _, former in second] == [None] * 4
    assert {point["x"] for point, _ in second}.isdisjoint(point["x"] for point, _ in first)


def test_a_last_generation_that_is_cut_short_has_the_best_of_its_members() -> None:
    sampler = population(most=6)
    generation(sampler, 0, [0.5, 0.9, 0.1, 0.7])
    assert [former for _, former in generation(sampler, 4, [1, 1])] == [1, 3]


def test_a_sampler_that_was_told_what_happened_goes_on_as_the_first_one_would() -> None:
    """As after a restart of the yard."""
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
def test_values_that_are_moved_stay_inside_of_their_expression(expression: Any) -> None:
    from runyard.spec.space import value_at
    from runyard.spec.space_checks import check_expression

    check_expression("x", expression)
    source = random.Random(5)
    value, seen = value_at(expression, 0.5), set()
    for _ in range(200):
        value = perturb({"x": expression}, {"x": value}, source, 0.0)["x"]
        seen.add(value)
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
    assert len(seen) > 1 or expression == ["choice", [[7]]]


def test_a_member_of_one_of_several_spaces_stays_in_it() -> None:
    tree = {"model": "tree", "depth": ["choice", [[2, 4, 8]]]}
    net = {"model": "net", "units": ["choice", [[8, 16, 32]]]}
    space = {"kind": ["choice", [[tree, net]]]}
    for resampled in (0.0, 1.0):
        for n in range(20):
            moved = perturb(space, {"model": "net", "units": 16}, random.Random(n), resampled)
            assert moved["model"] == "net"
            assert moved["units"] in (8, 16, 32)


def test_members_from_a_sweep_of_another_space_get_values_of_this_one() -> None:
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
    ("settings", "said"),
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
def test_what_cannot_be_a_population_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=said):
        PopulationParameterSampling({"--x": uniform(0, 1)}, **settings)


# with real children

Start = Callable[..., HyperDriveRun]

# `--x` is how much it learns in each generation; what it has learnt is in outputs/
TRAIN = """\
import argparse, json, pathlib
from runyard import Run
parser = argparse.ArgumentParser()
parser.add_argument('--x', type=float)
parser.add_argument('--resume-from')
a = parser.parse_args()
state = {'learnt': 0, 'generations': 0}
if a.resume_from:
    state = json.loads(pathlib.Path(a.resume_from, 'state.json').read_text())
state = {'learnt': state['learnt'] + a.x, 'generations': state['generations'] + 1}
pathlib.Path('outputs/state.json').write_text(json.dumps(state))
run = Run.get_context()
run.log('score', state['learnt'])
run.log('generations', state['generations'])
"""


@pytest.mark.real
def test_children_go_on_from_each_other_through_all_generations(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(1, 10)}, 4, resample_probability=0, seed=3)
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=12, max_concurrent_runs=2)
    sweep.wait_for_completion(raise_on_error=True)
    children = sorted(sweep._sweep()["children"], key=lambda child: child["number"])
    metrics = sweep.get_metrics()
    by_id = {child["run_id"]: child for child in children}
    for child in children:
        mine = metrics[child["run_id"]]
        assert mine["generations"] == child["number"] // 4 + 1
        former = by_id.get(child["resumes"])
        if child["number"] < 4:
            assert former is None
        else:
            learnt = metrics[former["run_id"]]["score"]
            assert mine["score"] == pytest.approx(learnt + child["parameters"]["--x"])
    ranked = sorted(children[:4], key=lambda child: -child["best"])
    assert [child["resumes"] for child in children[4:]][:3] == [child["run_id"] for child in ranked[:3]]
    assert children[7]["resumes"] == ranked[0]["run_id"]
    best = sweep.get_best_run_by_primary_metric()
    assert best is not None
    assert best.get_metrics()["generations"] == 3
    assert f"going on from child {ranked[0]['number']}" in _diary(sweep)


@pytest.mark.real
def test_a_population_goes_on_after_a_kill_of_the_yard(sweep_of: Start, home: Path) -> None:
    sampling = PopulationParameterSampling({"--x": uniform(1, 10)}, 2, seed=3)
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=8, max_concurrent_runs=2)
    eventually(lambda: len(sweep._sweep()["children"]) > 3, "the second generation is on its way", within_s=60)
    stop_yard(home, signal.SIGKILL)
    sweep.wait_for_completion(raise_on_error=True)
    found = [metrics["generations"] for metrics in sweep.get_metrics().values()]
    assert sorted(found) == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.real
def test_a_member_without_outputs_is_gone_on_from_with_nothing_and_this_is_said(sweep_of: Start) -> None:
    script = TRAIN.replace("pathlib.Path('outputs/state.json').write_text(json.dumps(state))\n", "")
    sampling = PopulationParameterSampling({"--x": choice(1, 2)}, 2, seed=3)
    sweep = sweep_of(script, hyperparameter_sampling=sampling)
    sweep.wait_for_completion(raise_on_error=True)
    assert {metrics["generations"] for metrics in sweep.get_metrics().values()} == {1}
    assert " left no outputs to go on from, and child 2 begins anew" in _diary(sweep)
    assert {child["resumes"] for child in sweep._sweep()["children"]} == {""}
    assert sum("left no outputs" in warning["message"] for warning in sweep.get_details()["warnings"]) == 1


@pytest.mark.real
def test_a_member_that_ended_badly_is_not_gone_on_from_for_having_been_good_before(sweep_of: Start) -> None:
    script = TRAIN.replace("run.log('generations'", "run.log('score', 0 if a.x < 3 else 1)\nrun.log('generations'")
    script = script.replace("run.log('score', state['learnt'])", "run.log('score', 20 - a.x)")
    sampling = PopulationParameterSampling({"--x": choice(1, 2, 3, 4)}, 4, resample_probability=0, seed=1)
    sweep = sweep_of(script, hyperparameter_sampling=sampling, max_total_runs=8, max_concurrent_runs=2)
    sweep.wait_for_completion(raise_on_error=True)
    children = {child["run_id"]: child for child in sweep._sweep()["children"]}
    first = [child["parameters"]["--x"] for child in children.values() if child["number"] < 4]
    assert min(first) < 3 <= max(first), "the seed gives some of both"
    (replaced,) = [child for child in children.values() if child["number"] == 7]
    assert children[replaced["resumes"]]["parameters"]["--x"] >= 3


@pytest.mark.real
def test_a_policy_and_a_population_are_not_taken_together(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": loguniform(-3, -1)}, 2)
    with pytest.raises(HyperDriveConfigException, match="population sampling excludes an early termination policy"):
        sweep_of(hyperparameter_sampling=sampling, policy=BanditPolicy(slack_factor=0.1))
    sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, policy=NoTerminationPolicy())
    assert sweep.wait_for_completion()["status"] == "Completed"


@pytest.mark.real
def test_a_population_without_a_second_generation_is_doubted(sweep_of: Start) -> None:
    sampling = PopulationParameterSampling({"--x": choice(1, 2)}, 4)
    with pytest.warns(UserWarning, match="there is no second generation"):
        sweep = sweep_of(TRAIN, hyperparameter_sampling=sampling, max_total_runs=4)
    sweep.wait_for_completion()


def _diary(sweep: HyperDriveRun) -> str:
    return (sweep.folder / "azureml-logs" / "hyperdrive.txt").read_text()
