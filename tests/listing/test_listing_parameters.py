from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.spec.parameters import number_in, parameters_of


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("", {}),
        ("--lr 0.1 --epochs 5", {"lr": "0.1", "epochs": "5"}),
        ("--lr=0.1 -n 5", {"lr": "0.1", "n": "5"}),
        ("--verbose --lr 0.1 --fast", {"verbose": "true", "lr": "0.1", "fast": "true"}),
        ("--shift -1 --low -0.5", {"shift": "-1", "low": "-0.5"}),
        ("--lr 0.1 --lr 0.2", {"lr": "0.2"}),
        ("data.csv --layers 64 32", {"layers": "64"}),
        ("model.lr=0.1 +trainer.gpus=2 optimizer=adam", {"model.lr": "0.1", "trainer.gpus": "2", "optimizer": "adam"}),
        ("--filter a=b", {"filter": "a=b"}),
        ("--learning-rate 0.1 --a/b=1", {"learning-rate": "0.1", "a/b": "1"}),
        ("--empty= --x", {"empty": "", "x": "true"}),
        ("-- --x", {"x": "true"}),
    ],
)
def test_arguments_are_parameters(arguments: str, found: dict[str, str]) -> None:
    assert parameters_of(arguments.split()) == found


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("-0.5", -0.5), ("1e-3", 0.001), (".5", 0.5), ("2.", 2.0), ("0", 0)],
)
def test_a_number_is_a_number(text: str, number: float) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    "text", ["007", "", "1_000", "12345678901234567890", "nan", "0x10", "1e5000", "v1", " 1", None]
)
def test_what_only_looks_like_one_is_kept_as_it_was_written(text: str | None) -> None:
    assert number_in(text) is None


@given(st.lists(st.text(max_size=8)))
def test_no_arguments_are_too_odd(arguments: list[str]) -> None:
    parameters_of(arguments)
