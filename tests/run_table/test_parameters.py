from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.spec.parameters import parse_number, parse_parameters


@pytest.mark.parametrize(
    ("arguments", "expected"),
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
def test_arguments_are_parameters(arguments: str, expected: dict[str, str]) -> None:
    assert parse_parameters(arguments.split()) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("-0.5", -0.5), ("1e-3", 0.001), (".5", 0.5), ("2.", 2.0), ("0", 0)],
)
def test_numbers_are_parsed(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text", ["007", "", "1_000", "12345678901234567890", "nan", "0x10", "1e5000", "v1", " 1", None]
)
def test_texts_that_only_resemble_numbers_stay_texts(text: str | None) -> None:
    assert parse_number(text) is None


@given(st.lists(st.text(max_size=8)))
def test_arbitrary_arguments_do_not_raise(arguments: list[str]) -> None:
    parameters = parse_parameters(arguments)
    assert all(isinstance(value, str) for pair in parameters.items() for value in pair)
    assert len(parameters) <= len(arguments)
