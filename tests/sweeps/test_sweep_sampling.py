"""Samplers: repeatable, complete, and better than random where they learn."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any

import pytest

from runyard.spec.sweep import BAYESIAN, GRID, RANDOM, SOBOL, Observation, Sampling
from runyard.sweeps.sampling import Sampler, create_sampler

SPACE = {"lr": ["uniform", [-5, 10]], "units": ["uniform", [0, 15]]}


def build(
    name: str, space: dict[str, Any] = SPACE, *, seed: int = 3, max_children: int = 32, observations: Any = ()
) -> Sampler:
    return create_sampler(Sampling(name, space, seed), max_children, observations, sign=-1.0)


@pytest.mark.parametrize("name", [RANDOM, SOBOL, BAYESIAN])
def test_a_seed_makes_a_sampling_repeatable(name: str) -> None:
    first, second, other = build(name), build(name), build(name, seed=4)
    points = [first.ask(n) for n in range(6)]
    assert points == [second.ask(n) for n in range(6)]
    assert points != [other.ask(n) for n in range(6)]


@pytest.mark.parametrize("name", [RANDOM, SOBOL, GRID])
def test_the_same_child_number_gets_the_same_values(name: str) -> None:
    space = {"x": ["choice", [[1, 2, 3]]]}
    assert build(name, space).ask(2) == build(name, space).ask(2)


def test_a_grid_ends_after_its_last_point() -> None:
    grid = build(GRID, {"x": ["choice", [[1, 2]]], "y": ["choice", [[1, 2]]]})
    assert [grid.ask(n) is not None for n in range(6)] == [True] * 4 + [False] * 2


def test_the_full_grid_is_tried_after_resumed_children() -> None:
    sampling = Sampling(GRID, {"x": ["choice", [[1, 2, 3]]]})
    grid = create_sampler(sampling, 8, (), 1.0, resumed=2)
    assert [grid.ask(number) for number in range(2, 6)] == [{"x": 1}, {"x": 2}, {"x": 3}, None]


def test_sobol_covers_every_quarter_of_a_square_evenly() -> None:
    sobol = build(SOBOL, {"x": ["uniform", [0, 2]], "y": ["uniform", [0, 2]]}, max_children=16)
    quarters = [(int(p["x"]), int(p["y"])) for p in (sobol.ask(n) for n in range(16)) if p]
    assert sorted(quarters.count(q) for q in set(quarters)) == [4, 4, 4, 4]


def branin(point: dict[str, Any]) -> float:
    """A known function of two parameters with three equal minima of 0.3979."""
    import math

    x, y = point["lr"], point["units"]
    return float(
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def lowest_value(sampler: Sampler, children: int) -> float:
    values = []
    for number in range(children):
        point = sampler.ask(number)
        assert point is not None
        values.append(branin(point))
        sampler.tell(number, -values[-1])
    return min(values)


def test_bayesian_beats_random_on_a_known_function_over_many_seeds() -> None:
    seeds = range(12)
    bayesian = mean(lowest_value(build(BAYESIAN, seed=seed), 40) for seed in seeds)
    baseline = mean(lowest_value(build(RANDOM, seed=seed), 40) for seed in seeds)
    assert bayesian < baseline


def test_bayesian_sampling_learns_from_earlier_sweeps() -> None:
    observations = tuple(Observation({"lr": 3.14 + n / 100, "units": 2.27 + n / 100}, 0.4 + n / 50) for n in range(20))
    warm = [build(BAYESIAN, observations=observations, seed=seed).ask(0) for seed in range(8)]
    cold = [build(BAYESIAN, seed=seed).ask(0) for seed in range(8)]
    assert mean(branin(p) for p in warm if p) < mean(branin(p) for p in cold if p)


def test_bayesian_sampling_continues_after_a_restart() -> None:
    space = {
        "model": ["choice", [[{"kind": "a", "x": ["uniform", [0, 1]]}, {"kind": "b", "y": ["uniform", [0, 1]]}]]],
        "batch": ["quniform", [16, 64, 16]],
        "flag": ["choice", [[True, False]]],
    }
    before = build(BAYESIAN, space)
    points = [before.ask(n) for n in range(5)]
    after = build(BAYESIAN, space)
    for number, point in enumerate(points):
        assert point is not None
        after.restore(number, point)
        after.tell(number, float(number))
    point = after.ask(5)
    assert point is not None
    assert set(point) in ({"kind", "x", "batch", "flag"}, {"kind", "y", "batch", "flag"})
    assert point["batch"] in (16, 32, 48, 64)


def test_bayesian_sampling_supports_every_expression_and_learns_from_it() -> None:
    space = {
        "lr": ["loguniform", [-12, 0]],
        "width": ["randint", [64]],
        "noise": ["lognormal", [0, 1]],
        "shift": ["normal", [0, 1]],
        "steps": ["qlognormal", [3, 1, 5]],
        "size": ["qloguniform", [0, 7, 1]],
        "mean": ["qnormal", [100, 20, 5]],
        "rate": ["quniform", [0.5, 4.5, 1]],
    }
    best = {"lr": 1e-3, "width": 5, "noise": 1.0, "shift": 0.5, "steps": 20, "size": 9, "mean": 110, "rate": 2}
    observations = tuple(Observation({**best, "lr": 10.0**-n}, abs(n - 3)) for n in range(6)) * 4
    points = [build(BAYESIAN, space, observations=observations, seed=seed).ask(0) for seed in range(8)]
    assert all(point is not None and 0 <= point["width"] < 64 and point["rate"] in (1, 2, 3, 4) for point in points)
    assert all(point is not None and point["steps"] % 5 == point["mean"] % 5 == 0 for point in points)
    distances = sorted(abs(math.log10(point["lr"]) + 3) for point in points if point is not None)
    assert distances[4] < 1  # most are near the best rate, which is one of six orders of magnitude


def test_bayesian_sampling_ignores_a_value_of_another_type() -> None:
    """A resumed child may be of a sweep with another space."""
    observations = (Observation({"lr": "fast"}, 1.0), Observation({"lr": 1e9}, 2.0))
    point = build(BAYESIAN, {"lr": ["loguniform", [-6, -1]]}, observations=observations).ask(0)
    assert point is not None
    assert math.exp(-6) <= point["lr"] <= math.exp(-1)


def test_bayesian_sampling_attributes_observations_to_the_right_nested_space() -> None:
    """In a warm start or after a restart, results of the net must not be attributed to the tree."""
    tree = {"model": "tree", "depth": ["choice", [[2, 4]]]}
    net = {"model": "net", "units": ["choice", [[8, 16]]]}
    observations = tuple(Observation({"model": "net", "units": 8 * (1 + n % 2)}, 10.0 - n % 2) for n in range(12))
    observations += tuple(Observation({"model": "tree", "depth": 2 * (1 + n % 2)}, 0.0) for n in range(12))
    sampler = create_sampler(Sampling(BAYESIAN, {"of": ["choice", [[tree, net]]]}, 3), 32, observations, 1.0)
    points = [sampler.ask(number) for number in range(10)]
    assert sum(point is not None and point["model"] == "net" for point in points) > 7
