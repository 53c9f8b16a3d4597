"""Completion: what may stand at a place of a query."""

from __future__ import annotations

import pytest

from listing_support import Runs
from runyard.lifecycle.state import RunState
from runyard.run_table.completion import complete, fields


@pytest.fixture
def two(runs: Runs) -> Runs:
    runs.add("r-1", "--lr", "0.1", "--optimizer", "adam", experiment="digits", tags={"team": "vision"}, loss=1.0)
    runs.add("r-2", "--lr", "0.2", experiment="speech", state=RunState.FAILED, tags={"team": "far away"})
    runs.log("r-2", "val loss", 2.0)
    return runs


def texts(runs: Runs, query: str, at: int | None = None) -> list[str]:
    return [option.text for option in complete(runs.table, query, len(query) if at is None else at)[2]]


def applied(runs: Runs, query: str, at: int, text: str) -> str:
    begin, end, options = complete(runs.table, query, at)
    assert text in [option.text for option in options]
    return query[:begin] + text + query[end:]


def test_names_begin_with_what_was_typed(two: Runs) -> None:
    assert texts(two, "exp")[0] == "experiment"
    assert "params.lr" in texts(two, "l")
    assert "metrics.loss" in texts(two, "metrics.")
    assert 'metrics."val loss"' in texts(two, "val")
    assert texts(two, "zzz") == []


def test_nothing_typed_offers_the_fields(two: Runs) -> None:
    offered = texts(two, "")
    assert {"status", "experiment", "created", "duration"} <= set(offered)


def test_a_whole_name_offers_its_operators(two: Runs) -> None:
    assert {"lr<", "lr>"} <= set(texts(two, "lr"))
    assert "status:" in texts(two, "status")
    assert "created>" in texts(two, "created")


def test_values_are_those_that_runs_have(two: Runs) -> None:
    assert texts(two, "experiment:") == ["digits", "speech"]
    assert texts(two, "experiment:sp") == ["speech"]
    assert texts(two, "team:") == ['"far away"', "vision"]
    assert texts(two, "status:f")[0] == "Failed"
    assert texts(two, "optimizer=a") == ["adam"]
    assert "7d" in texts(two, "created>")


def test_an_option_replaces_the_word_that_the_cursor_is_in(two: Runs) -> None:
    assert applied(two, "exp lr>1", 3, "experiment") == "experiment lr>1"
    assert applied(two, "(status:fa or lr>1)", 10, "Failed") == "(status:Failed or lr>1)"
    assert applied(two, "expnt:x", 3, "experiment") == "experiment:x"


def test_every_option_is_a_query_that_can_be_read(two: Runs) -> None:
    for query in ("", "l", "team:", "experiment:", 'tags.team:"f'):
        begin, end, options = complete(two.table, query, len(query))
        assert options
        for option in options:
            text = query[:begin] + option.text + query[end:]
            two.table.page(text if option.text[-1] not in "<>=:~" else f"{text}1d" if "ed" in text else f"{text}1")


def test_the_fields_tell_kind_and_how_many_runs_have_them(two: Runs) -> None:
    known = {field.name: (field.kind, field.runs) for field in fields(two.table)}
    assert known["created_at"] == ("time", 2)
    assert known["params.lr"] == ("number", 2)
    assert known["tags.team"] == ("text", 2)
    assert known["metrics.loss"] == ("number", 1)


def test_a_rare_value_is_offered_however_many_others_are_commoner(runs: Runs) -> None:
    for number in range(120):
        runs.add(f"r-{number}", experiment=f"common-{number // 2}")
    runs.add("r-rare", experiment="rare")
    assert [option.text for option in complete(runs.table, "experiment:ra", 13)[2]] == ["rare"]
