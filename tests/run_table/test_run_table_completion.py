"""Completion of queries."""

from __future__ import annotations

import pytest

from run_table_support import Runs
from runyard.lifecycle.state import RunState
from runyard.run_table.completion import complete, fields


@pytest.fixture
def two_runs(runs: Runs) -> Runs:
    runs.add("r-1", "--lr", "0.1", "--optimizer", "adam", experiment="digits", tags={"team": "vision"}, loss=1.0)
    runs.add("r-2", "--lr", "0.2", experiment="speech", state=RunState.FAILED, tags={"team": "far away"})
    runs.log("r-2", "val loss", 2.0)
    return runs


def texts(runs: Runs, query: str) -> list[str]:
    return [option.text for option in complete(runs.table, query, len(query))[2]]


def apply_option(runs: Runs, query: str, cursor: int, text: str) -> str:
    begin, end, options = complete(runs.table, query, cursor)
    assert text in [option.text for option in options]
    return query[:begin] + text + query[end:]


def test_names_that_match_the_typed_text_are_offered(two_runs: Runs) -> None:
    assert texts(two_runs, "exp")[0] == "experiment"
    assert "params.lr" in texts(two_runs, "l")
    assert "metrics.loss" in texts(two_runs, "metrics.")
    assert 'metrics."val loss"' in texts(two_runs, "val")
    assert texts(two_runs, "zzz") == []


def test_an_empty_query_offers_the_fields(two_runs: Runs) -> None:
    options = texts(two_runs, "")
    assert {"status", "experiment", "created", "duration"} <= set(options)


def test_a_complete_name_offers_its_operators(two_runs: Runs) -> None:
    assert {"lr<", "lr>"} <= set(texts(two_runs, "lr"))
    assert "status:" in texts(two_runs, "status")
    assert "created>" in texts(two_runs, "created")


def test_values_that_occur_in_runs_are_offered(two_runs: Runs) -> None:
    assert texts(two_runs, "experiment:") == ["digits", "speech"]
    assert texts(two_runs, "experiment:sp") == ["speech"]
    assert texts(two_runs, "team:") == ['"far away"', "vision"]
    assert texts(two_runs, "status:f")[0] == "Failed"
    assert texts(two_runs, "optimizer=a") == ["adam"]
    assert "7d" in texts(two_runs, "created>")


def test_an_option_replaces_the_word_at_the_cursor(two_runs: Runs) -> None:
    assert apply_option(two_runs, "exp lr>1", 3, "experiment") == "experiment lr>1"
    assert apply_option(two_runs, "(status:fa or lr>1)", 10, "Failed") == "(status:Failed or lr>1)"
    assert apply_option(two_runs, "expnt:x", 3, "experiment") == "experiment:x"


def test_every_option_yields_a_valid_query(two_runs: Runs) -> None:
    for query in ("", "l", "team:", "experiment:", 'tags.team:"f'):
        begin, end, options = complete(two_runs.table, query, len(query))
        assert options
        for option in options:
            text = query[:begin] + option.text + query[end:]
            two_runs.table.page(text if option.text[-1] not in "<>=:~" else f"{text}1d" if "ed" in text else f"{text}1")


def test_fields_have_a_kind_and_a_number_of_runs(two_runs: Runs) -> None:
    by_name = {field.name: (field.kind, field.runs) for field in fields(two_runs.table)}
    assert by_name["created_at"] == ("time", 2)
    assert by_name["params.lr"] == ("number", 2)
    assert by_name["tags.team"] == ("text", 2)
    assert by_name["metrics.loss"] == ("number", 1)


def test_a_rare_value_is_offered_even_if_many_others_are_more_common(runs: Runs) -> None:
    for number in range(120):
        runs.add(f"r-{number}", experiment=f"common-{number // 2}")
    runs.add("r-rare", experiment="rare")
    assert [option.text for option in complete(runs.table, "experiment:ra", 13)[2]] == ["rare"]
