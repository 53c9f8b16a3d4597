"""Search space expressions: validation and drawing."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from typing import Any

import pytest

from runyard.spec.space import grid_points, grid_size, quantile_of, random_point, value_at
from runyard.spec.space_checks import SpaceError, check_space
from runyard.spec.sweep import BAYESIAN, GRID, MAXIMIZE, RANDOM, Sampling, SweepSpec, Trial
from runyard.sweeps.importance import importance

QUANTILES = [0.0, 0.001, 0.25, 0.5, 0.75, 0.999, 1 - 1e-12]
NUMBERS = [
    ["randint", [10]],
    ["uniform", [-1, 1]],
    ["loguniform", [-6, -1]],
    ["normal", [0, 1]],
    ["lognormal", [0, 1]],
    ["quniform", [0.5, 4.5, 1]],
    ["qloguniform", [0, 7, 1]],
    ["qnormal", [100, 20, 5]],
    ["qlognormal", [3, 1, 5]],
]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (["choice", [[]]], "at least one"),
        (["choice", [[1, "a"]]], "mix"),
        (["choice", [[date(2026, 1, 1)]]], r"got datetime.date\(2026, 1, 1\) \(date\)"),
        (["choice", [[{1, 2}]]], r"\(set\)"),
        (["choice", [[["uniform", [0, 1]], ["uniform", [2, 3]]]]], r"an option cannot be uniform\(…\)"),
        (["choice", [[float("nan"), 1.0]]], "got nan"),
        (["choice", [[{}]]], "an option that is a space must have at least one parameter"),
        (["choice", [[{"": ["choice", [[1]]]}]]], "'' in an option of '--lr' is not a valid parameter name"),
        (["choice", [[{"--": 1}]]], "'--' in an option of '--lr' is not a valid parameter name"),
        (["choice", [[{"a": 1, "--a": 2}]]], "'a' and '--a' in an option of '--lr' are the same"),
        (["choice", [[{"a": {"b": 1}}]]], "'a' in an option of '--lr' must be an expression or a plain value"),
        (["uniform", [2, 1]], "less than"),
        (["uniform", [1, 1]], "less than"),
        (["uniform", ["a", 1]], "must be a number"),
        (["uniform", [float("nan"), 1]], "must be a number"),
        (["uniform", [0, 10**400]], "exceeds the range of a float"),
        (["uniform", [-1.7e308, 1.7e308]], "exceeds the range of a float"),
        (["uniform", [0]], "does not accept 1"),
        (["loguniform", [0, 1000]], "exponent"),
        (["quniform", [0, 10, 0.5]], "whole number"),
        (["quniform", [0, 10, 0]], "whole number"),
        (["quniform", [0, 10, 10**400]], "exceeds the range of a float"),
        (["quniform", [1, 4, 10]], "no multiple of 10 is between 1 and 4"),
        (["normal", [0, -1]], "negative"),
        (["randint", [0]], "at least 1"),
        (["randint", [2.5]], "whole number"),
        (["randint", [10**400]], "exceeds the range of a float"),
        (["gaussian", [0, 1]], "not an expression"),
        (0.1, "not an expression"),
    ],
)
def test_an_invalid_expression_is_rejected_with_the_parameter_name(expression: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message) as caught:
        check_space({"--lr": expression})
    assert "--lr" in str(caught.value)


def test_an_unsupported_expression_error_lists_the_supported_ones() -> None:
    with pytest.raises(SpaceError, match="only choice"):
        check_space({"lr": ["uniform", [0, 1]]}, sampling=GRID)


def test_nested_spaces_are_checked_against_the_sampling() -> None:
    inner = ["choice", [[{"--b": ["choice", [[{"--x": ["uniform", [0, 1]]}]]]}]]]
    with pytest.raises(SpaceError, match=r"'--x': .*does not support uniform, only choice"):
        check_space({"--m": inner}, GRID)
    check_space({"--m": inner}, BAYESIAN)


@pytest.mark.parametrize("expression", NUMBERS)
def test_the_quantile_of_a_value_gives_the_value_again(expression: Any) -> None:
    for number in range(1, 100):
        value = value_at(expression, number / 100)
        assert value_at(expression, quantile_of(expression, value)) == pytest.approx(value)


def test_duplicate_parameter_names_are_rejected() -> None:
    with pytest.raises(SpaceError, match="'lr' and '--lr' in parameter_space are the same parameter"):
        check_space({"lr": ["choice", [[1]]], "--lr": ["choice", [[2]]]})


def test_a_nested_space_may_contain_only_plain_values() -> None:
    space = {"--model": ["choice", [[{"--model": "net"}, {"--model": "tree", "--depth": ["choice", [[2, 4]]]}]]]}
    for sampling in ("", GRID, BAYESIAN):
        check_space(space, sampling)
    assert list(grid_points(space)) == [
        {"--model": "net"},
        {"--model": "tree", "--depth": 2},
        {"--model": "tree", "--depth": 4},
    ]


@pytest.mark.parametrize("quantile", QUANTILES)
def test_values_stay_within_their_limits(quantile: float) -> None:
    assert 2 <= value_at(["uniform", [2, 3]], quantile) <= 3
    assert math.exp(-6) * 0.999 <= value_at(["loguniform", [-6, -1]], quantile) <= math.exp(-1) * 1.001
    assert value_at(["randint", [4]], quantile) in range(4)
    assert value_at(["choice", [["a", "b", "c"]]], quantile) in ("a", "b", "c")
    assert value_at(["quniform", [0, 100, 5]], quantile) % 5 == 0
    assert value_at(["lognormal", [0, 1]], quantile) > 0
    assert value_at(["normal", [7, 0]], quantile) == 7


def test_a_point_depends_only_on_its_seed() -> None:
    space = {"lr": ["loguniform", [-6, -1]], "units": ["choice", [[16, 32, 64]]]}
    assert random_point(space, "1/5") == random_point(space, "1/5")
    assert len({str(random_point(space, f"1/{n}")) for n in range(50)}) == 50


def test_a_choice_draws_each_option_about_equally_often() -> None:
    counts = Counter(random_point({"x": ["choice", [[1, 2, 3, 4]]]}, str(n))["x"] for n in range(4000))
    assert set(counts) == {1, 2, 3, 4}
    assert min(counts.values()) > 800


def test_a_grid_has_every_combination_once() -> None:
    space = {"a": ["choice", [[1, 2, 3]]], "b": ["choice", [["x", "y"]]]}
    points = list(grid_points(space))
    assert len(points) == grid_size(space) == 6
    assert {(p["a"], p["b"]) for p in points} == {(a, b) for a in (1, 2, 3) for b in "xy"}


@pytest.mark.parametrize("extreme", [10**400, math.nan, math.inf])
def test_importance_tolerates_values_that_are_not_finite_floats(extreme: float) -> None:
    spec = SweepSpec(Sampling(RANDOM, {}), "score", MAXIMIZE, 12, 1, {})
    values = [extreme, *(float(number) for number in range(11))]
    trials = [Trial(number, f"HD_{number}", {"x": value}, best=number) for number, value in enumerate(values)]
    assert importance(spec, trials).parameters == {"x": 1.0}


def test_a_nested_space_adds_only_its_own_parameters() -> None:
    space = {
        "model": [
            "choice",
            [[{"kind": "tree", "depth": ["choice", [[2, 4]]]}, {"kind": "net", "units": ["choice", [[8]]]}]],
        ],
        "lr": ["choice", [[0.1]]],
    }
    check_space(space)
    points = list(grid_points(space))
    assert grid_size(space) == len(points) == 3
    assert {"kind": "tree", "depth": 2, "lr": 0.1} in points
    assert {"kind": "net", "units": 8, "lr": 0.1} in points
    assert all(("units" in p) != ("depth" in p) for p in (random_point(space, str(n)) for n in range(40)))
