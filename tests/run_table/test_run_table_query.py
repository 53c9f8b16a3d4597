"""The query language, tested by its matches."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from run_table_support import Runs
from runyard.lifecycle.state import RunState
from runyard.run_table.parser import parse
from runyard.run_table.tokenizer import QueryError


@pytest.fixture
def four_runs(runs: Runs) -> Runs:
    now = time.time()
    runs.add("r-1", "--lr", "0.1", "--optimizer", "adam", created_at=now - 4 * 86400, loss=0.5, tags={"team": "vision"})
    runs.add("r-2", "--lr", "0.01", "--bright", created_at=now - 3600, took=7200, loss=0.2, tags={"team": "Audio"})
    failed = RunState.FAILED
    runs.add("r-3", "--lr", "0.001", experiment="speech", state=failed, message="no", created_at=now - 60, loss=0.9)
    runs.add("r-queued", experiment="speech", state=RunState.QUEUED, created_at=now, name="last try")
    return runs


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "r-1 r-2 r-3 r-queued"),
        ("status:failed", "r-3"),
        ("status:FAILED,queued", "r-3 r-queued"),
        ("status:active", "r-queued"),
        ("not status:active", "r-1 r-2 r-3"),
        ("experiment:digits", "r-1 r-2"),
        ("experiment:sp*", "r-3 r-queued"),
        ("experiment:dig", ""),
        ("experiment~dig", "r-1 r-2"),
        ("lr>0.005", "r-1 r-2"),
        ("lr >= 0.01", "r-1 r-2"),
        ("params.lr=0.10", "r-1"),
        ("params.lr!=0.1", "r-2 r-3"),
        ("metrics.loss<0.3", "r-2"),
        ("loss<0.6 lr<0.05", "r-2"),
        ("loss<0.3 or status:queued", "r-2 r-queued"),
        ("experiment:digits (loss<0.3 or lr=0.1)", "r-1 r-2"),
        ("experiment:digits and not (loss<0.3 or lr=0.5)", "r-1"),
        ("team:vision", "r-1"),
        ("tags.team:audio", "r-2"),
        ("tags.team=audio", ""),
        ("tags.team:*", "r-1 r-2"),
        ("bright:true", "r-2"),
        ("created>2d", "r-2 r-3 r-queued"),
        ("created<2d", "r-1"),
        ("created>2020-01-01", "r-1 r-2 r-3 r-queued"),
        ("ended<2020-01-01T10:30", ""),
        ("duration>1h", "r-2"),
        ("duration<1.5h duration>30s status:completed", "r-1"),
        ("last", "r-queued"),
        ('"last try"', "r-queued"),
        ("SPEECH", "r-3 r-queued"),
        ("id:r-1", "r-1"),
        ('name:"last try"', "r-queued"),
        ("user:ada nodes=1 ranks:1 target:local", "r-1 r-2 r-3 r-queued"),
        ("reason~'script failed'", "r-3"),
        ("nothing.like.this>1", ""),
        ("or:x", ""),
    ],
)
def test_a_query_matches(four_runs: Runs, query: str, expected: str) -> None:
    assert four_runs.find(query) == expected.split()


@pytest.mark.parametrize(
    ("query", "position", "message"),
    [
        ("lr>", 3, "expected a value after '>'"),
        ("status:failed or", 14, "after `or`"),
        ("or lr>1", 0, "before `or`"),
        ("(lr>1", 0, "unclosed ("),
        ("lr>1)", 4, "unmatched )"),
        ("lr>fast", 3, "expected a number, got 'fast'"),
        ("created>soon", 8, "expected a time, got 'soon'"),
        ("created>2026-13-01", 8, "expected a time"),
        ("duration>long", 9, "expected a duration"),
        (">3", 0, "expected a field name"),
        ('name:"open', 5, "unclosed quote"),
        ("not", 0, "after `not`"),
        ("a and", 2, "on both sides of `and`"),
        ("lr!0.1", 2, "expected a name or a word"),
    ],
)
def test_an_error_has_its_position_and_the_expectation(query: str, position: int, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as caught:
        parse(query)
    assert caught.value.facts["position"] == position


def test_names_with_spaces_and_symbols_can_be_quoted(runs: Runs) -> None:
    runs.add("r-1")
    runs.log("r-1", "val loss/mean", 0.25)
    assert runs.find('metrics."val loss/mean"<0.3') == ["r-1"]
    assert runs.find('metrics."val loss/mean">0.3') == []


def test_a_field_takes_precedence_over_a_parameter_of_the_same_name(runs: Runs) -> None:
    runs.add("r-1", "--status", "failed", "--nodes", "9")
    assert runs.find("status:failed") == []
    assert runs.find("params.status:failed params.nodes=9 nodes=1") == ["r-1"]


@given(st.text(alphabet="ab.<>=!:~()\"' \\0129ornt*,-", max_size=30))
def test_arbitrary_text_is_a_query_or_a_query_error(text: str) -> None:
    position = 0
    try:
        parse(text)
    except QueryError as error:
        position = error.facts["position"]
    assert 0 <= position <= len(text)


@pytest.mark.parametrize("query", ["(" * 500 + "a" + ")" * 500, "not " * 2000 + "a", "(" * 100_000])
def test_deep_nesting_is_a_query_error(query: str) -> None:
    with pytest.raises(QueryError, match="nested"):
        parse(query)


def test_many_conditions_at_one_level_are_accepted() -> None:
    parse(" ".join(f"(a:{number} or not b:{number})" for number in range(1000)))


def test_a_time_before_the_calendar_is_a_query_error() -> None:
    with pytest.raises(QueryError, match="expected a time"):
        parse("created_at>0000-00-00")
