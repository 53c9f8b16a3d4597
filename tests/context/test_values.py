from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runyard.context.journal import Journal
from runyard.context.values import to_scalar, validate_list
from runyard.errors import RunyardException, UserErrorException


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.mark.parametrize("value", [[1], (1, 2), range(3), {"a": 1}, {1}, (x for x in [1])])
def test_log_refuses_several_values_and_names_log_list(journal: Journal, value: Any) -> None:
    """B10.61."""
    with pytest.raises(UserErrorException, match="log_list"):
        journal.log("loss", value)


@pytest.mark.parametrize("name", ["", "x" * 256, 3, None, ["loss"], "\ud800"])
def test_a_name_that_is_not_a_short_string_is_refused(journal: Journal, name: Any) -> None:
    with pytest.raises(UserErrorException, match="name"):
        journal.log(name, 1.0)


@pytest.mark.parametrize("step", ["1", 1.5, 2**63, object()])
def test_a_step_that_is_not_a_64_bit_integer_is_refused(journal: Journal, step: Any) -> None:
    with pytest.raises(UserErrorException, match="step"):
        journal.log("loss", 1.0, step=step)
    journal.log("loss", 1.0)
    with pytest.raises(UserErrorException, match="step"):
        journal.log("loss", 1.0, step=step)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float16(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int8(-3), -3),
        (np.int32(7), 7),
        (np.int64(2**40), 2**40),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.array([1, 2]), "array([1, 2])"),
        (1 + 2j, "(1+2j)"),
        (b"raw", "b'raw'"),
    ],
)
def test_numpy_scalars_become_plain_values_and_unknown_types_their_repr(value: Any, expected: Any) -> None:
    """B10.63."""
    plain = to_scalar("m", value)
    assert plain == expected
    assert type(plain) is type(expected)


def test_a_list_with_an_unsupported_type_is_refused_with_its_position() -> None:
    """B10.63."""
    with pytest.raises(RunyardException, match="element 1 is a complex"):
        validate_list("m", [1, 2j])
    with pytest.raises(RunyardException, match="element 0 is a list"):
        validate_list("m", [[1]])


@pytest.mark.parametrize("values", ["text", b"raw", {"a": 1}, 5, None])
def test_log_list_refuses_values_that_are_not_a_list(journal: Journal, values: Any) -> None:
    with pytest.raises(RunyardException, match="log_list expects a list"):
        journal.log_list("m", values)


def test_a_list_as_a_column_of_a_row_is_refused(journal: Journal) -> None:
    """B10.62."""
    with pytest.raises(RunyardException, match="column 'x' is a list"):
        journal.log_row("m", x=[1, 2], y=3)


def test_a_row_without_columns_is_refused(journal: Journal) -> None:
    with pytest.raises(UserErrorException, match="at least one column"):
        journal.log_row("m")


def test_columns_of_unequal_length_are_refused_with_their_lengths(journal: Journal) -> None:
    """B10.62."""
    with pytest.raises(RunyardException, match="'x' has 2, 'y' has 1"):
        journal.log_table("m", {"x": [1, 2], "y": [3]})


@pytest.mark.parametrize("table", [[1, 2], {}, "text", None])
def test_a_table_is_a_dict_of_columns(journal: Journal, table: Any) -> None:
    with pytest.raises(UserErrorException, match="dict of columns"):
        journal.log_table("m", table)


def test_an_integer_too_long_to_print_is_refused(journal: Journal) -> None:
    with pytest.raises(RunyardException, match="digits"):
        journal.log("m", 10**5000)


def test_no_file_is_created_before_the_first_point(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.flush()
    assert not (tmp_path / "journal").exists()
    journal.log("loss", math.pi)
    assert {path.suffix for path in (tmp_path / "journal").iterdir()} == {".seg", ".names"}
