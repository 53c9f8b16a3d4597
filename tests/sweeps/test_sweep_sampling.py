"""Samplings: repeatable, complete, and, where they learn, better than chance."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest

from runyard.spec.sweep import BAYESIAN, GRID, RANDOM, SOBOL, Observation, Sampling
from runyard.sweeps.sampling import Sampler, create_sampler

SPACE = {"lr": ["uniform", [-5, 10]], "units": ["uniform", [0, 15]]}


def made(name: str, space: dict[str, Any] = SPACE, *, seed: int = 3, most: int = 32, known: Any = ()) -> Sampler:
    return create_sampler(Sampling(name, space, seed), most, known, sign=-1.0)


@pytest.mark.parametrize("name", [RANDOM, SOBOL, BAYESIAN])
def test_a_seed_makes_a_sampling_repeatable(name: str) -> None:
    first, second, other = made(name), made(name), made(name, seed=4)
    points = [first.ask(n) for n in range(6)]
    assert points == [second.ask(n) for n in range(6)]
    assert points != [other.ask(n) for n in range(6)]


@pytest.mark.parametrize("name", [RANDOM, SOBOL, GRID])
def test_asked_again_for_a_number_it_gives_the_same_values(name: str) -> None:
    space = {"x": ["choice", [[1, 2, 3]]]}
    assert made(name, space).ask(2) == made(name, space).ask(2)


def test_a_grid_ends_after_its_last_point() -> None:
    grid = made(GRID, {"x": ["choice", [[1, 2]]], "y": ["choice", [[1, 2]]]})
    assert [grid.ask(n) is not None for n in range(6)] == [True] * 4 + [False] * 2


def test_a_grid_is_tried_whole_after_children_that_were_resumed() -> None:
    sampling = Sampling(GRID, {"x": ["choice", [[1, 2, 3]]]})
    grid = create_sampler(sampling, 8, (), 1.0, resumed=2)
    assert [grid.ask(number) for number in range(2, 6)] == [{"x": 1}, {"x": 2}, {"x": 3}, None]


def test_sobol_covers_every_quarter_of_a_square_evenly() -> None:
    sobol = made(SOBOL, {"x": ["uniform", [0, 2]], "y": ["uniform", [0, 2]]}, most=16)
    quarters = [(int(p["x"]), int(p["y"])) for p in (sobol.ask(n) for n in range(16)) if p]
    assert sorted(quarters.count(q) for q in set(quarters)) == [4, 4, 4, 4]


def branin(point: dict[str, Any]) -> float:
    """A known function of two parameters with three equal minima of 0.3979."""
    import math

    x, y = point["lr"], point["units"]
    return float(
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def least(sampler: Sampler, children: int) -> float:
    found = []
    for number in range(children):
        point = sampler.ask(number)
        assert point is not None
        found.append(branin(point))
        sampler.tell(number, -found[-1])
    return min(found)


def test_bayesian_beats_random_on_a_known_function_over_many_seeds() -> None:
    seeds = range(12)
    bayesian = mean(least(made(BAYESIAN, seed=seed), 40) for seed in seeds)
    chance = mean(least(made(RANDOM, seed=seed), 40) for seed in seeds)
    assert bayesian < chance


def test_what_is_known_from_earlier_sweeps_is_learnt_from() -> None:
    known = tuple(Observation({"lr": 3.14 + n / 100, "units": 2.27 + n / 100}, 0.4 + n / 50) for n in range(20))
    near = [made(BAYESIAN, known=known, seed=seed).ask(0) for seed in range(8)]
    cold = [made(BAYESIAN, seed=seed).ask(0) for seed in range(8)]
    assert mean(branin(p) for p in near if p) < mean(branin(p) for p in cold if p)


def test_a_bayesian_sampling_goes_on_after_a_restart_with_what_it_knew() -> None:
    space = {
        "model": ["choice", [[{"kind": "a", "x": ["uniform", [0, 1]]}, {"kind": "b", "y": ["uniform", [0, 1]]}]]],
        "batch": ["quniform", [16, 64, 16]],
        "flag": ["choice", [[True, False]]],
    }
    before = made(BAYESIAN, space)
    points = [before.ask(n) for n in range(5)]
    after = made(BAYESIAN, space)
    for number, point in enumerate(points):
        assert point is not None
        after.restore(number, point)
        after.tell(number, float(number))
    following = after.ask(5)
    assert following is not None
    assert set(following) in ({"kind", "x", "batch", "flag"}, {"kind", "y", "batch", "flag"})
    assert following["batch"] in (16, 32, 48, 64)


def test_a_bayesian_sampling_is_told_in_which_of_two_spaces_a_child_was_though_they_share_a_name() -> None:
    """As in a warm start, or after a restart: the net's results must not be held for the tree's."""
    tree = {"model": "tree", "depth": ["choice", [[2, 4]]]}
    net = {"model": "net", "units": ["choice", [[8, 16]]]}
    known = tuple(Observation({"model": "net", "units": 8 * (1 + n % 2)}, 10.0 - n % 2) for n in range(12))
    known += tuple(Observation({"model": "tree", "depth": 2 * (1 + n % 2)}, 0.0) for n in range(12))
    sampler = create_sampler(Sampling(BAYESIAN, {"of": ["choice", [[tree, net]]]}, 3), 32, known, 1.0)
    found = [sampler.ask(number) for number in range(10)]
    assert sum(point is not None and point["model"] == "net" for point in found) > 7
