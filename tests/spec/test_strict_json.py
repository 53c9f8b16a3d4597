"""JSON from sources that are not trusted: every text is parsed or refused with a ValueError."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.spec.strict_json import parse_json

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(), items, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_a_text_within_the_bounds_is_parsed_as_by_the_standard_library(value: Any) -> None:
    text = json.dumps(value)
    assert parse_json(text, max_bytes=1 << 20, max_depth=64) == json.loads(text)
    assert parse_json(text.encode(), max_bytes=1 << 20, max_depth=64) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"Infinity",
        b"[-Infinity]",
        b'{"node": NaN}',
        b"1e999",
        b"-1e999",
        b"9" * 5000,
        b"18446744073709551616",
        b"-9223372036854775809",
        b"0." + b"1" * 5000,
        b"[" * 3000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b"[" * 17 + b"]" * 17,
        b"\xff",
        "é".encode("utf-16"),
        b" " * 2_000_000,
    ],
)
def test_a_text_that_breaks_a_bound_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts have different reasons
        parse_json(text, max_bytes=1 << 20)


def test_the_depth_is_counted_in_lists_and_objects() -> None:
    assert parse_json("1", max_bytes=10, max_depth=0) == 1
    assert parse_json('[{"a": 1}]', max_bytes=10, max_depth=2) == [{"a": 1}]
    with pytest.raises(ValueError, match="nested deeper than 1 levels"):
        parse_json('[{"a": 1}]', max_bytes=10, max_depth=1)


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:0123456789.eE+-\\utrnNaIify ', max_size=200))
def test_no_text_raises_another_exception(text: str | bytes) -> None:
    with suppress(ValueError):
        parse_json(text, max_bytes=100)
