from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.context.journal import Journal
from runyard.errors import RunyardException
from runyard.store.database import Database
from runyard.store.schema import metadata
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import Points, downsample, encode_points, read_chart, read_metrics, read_points
from runyard.wire.points import NO_STEP, decode_points

Metrics = Callable[[], dict[str, Any]]


def test_one_value_is_unwrapped_and_several_are_a_list(journal: Journal, metrics: Metrics) -> None:
    """B10.60."""
    journal.log("once", 0.5)
    for value in (3.0, 1.0, 2.0):
        journal.log("often", value)
    assert metrics() == {"once": 0.5, "often": [3.0, 1.0, 2.0]}


def test_each_kind_of_value_is_kept(journal: Journal, metrics: Metrics) -> None:
    logged = {
        "f": 0.1,
        "i": 3,
        "b": True,
        "n": None,
        "t": "0.500",
        "big": -(2**80),
        "least": -(2**63),
        "u": "\ud800ä\0",
    }
    for name, value in logged.items():
        journal.log(name, value)
    values = metrics()
    assert values == logged
    assert {name: type(value) for name, value in values.items()} == {
        name: type(value) for name, value in logged.items()
    }


def test_nan_and_infinity_survive(journal: Journal, metrics: Metrics) -> None:
    journal.log("nan", math.nan)
    journal.log_list("several", [math.inf, -math.inf, math.nan])
    values = metrics()
    assert math.isnan(values["nan"])
    assert values["several"][:2] == [math.inf, -math.inf]
    assert math.isnan(values["several"][2])


def test_a_list_of_one_value_is_unwrapped_and_an_empty_one_is_ignored(journal: Journal, metrics: Metrics) -> None:
    """B10.61."""
    journal.log_list("one", [5])
    journal.log_list("none", [])
    journal.log_list("generated", (value for value in (1, 2)))
    assert metrics() == {"one": 5, "generated": [1, 2]}


def test_a_list_continues_what_was_logged_before(journal: Journal, metrics: Metrics) -> None:
    journal.log("m", 1)
    journal.log_list("m", [2, 3])
    journal.log("m", 4)
    assert metrics() == {"m": [1, 2, 3, 4]}


def test_integers_mixed_with_floats_become_floats(journal: Journal, metrics: Metrics) -> None:
    """B10.63."""
    journal.log_list("m", [1, 2.5, "x", None, True, 10**400])
    values = metrics()["m"]
    assert values == [1.0, 2.5, "x", None, True, math.inf]
    assert type(values[0]) is float
    assert values[4] is True


def test_one_row_is_a_dict_of_values_and_several_a_dict_of_lists(journal: Journal, metrics: Metrics) -> None:
    """B10.62."""
    journal.log_row("one", x=1, y="a")
    journal.log_row("two", x=1, y=0.5)
    journal.log_row("two", x=2, y=1)
    assert metrics() == {"one": {"x": 1, "y": "a"}, "two": {"x": [1, 2], "y": [0.5, 1.0]}}


def test_tables_and_rows_of_one_name_append(journal: Journal, metrics: Metrics) -> None:
    """B10.62."""
    journal.log_table("t", {"x": [1, 2], "y": [3, 4]})
    journal.log_row("t", x=5, y=6)
    journal.log_table("single", {"x": [1], "y": ["a"]})
    journal.log_table("empty", {"x": []})
    assert metrics() == {"t": {"x": [1, 2, 5], "y": [3, 4, 6]}, "single": {"x": 1, "y": "a"}}


def test_an_image_is_the_uri_of_its_file(journal: Journal, metrics: Metrics) -> None:
    """B10.64."""
    journal.log_image("acc over epochs.png", "acc over epochs.png_1.png")
    assert metrics() == {
        "acc over epochs.png": "aml://artifactId/ExperimentRun/dcid.r/acc over epochs.png_1.png",
    }


def test_other_kinds_of_a_name_get_a_suffix(journal: Journal, metrics: Metrics) -> None:
    journal.log("m", 1.0)
    metrics()
    journal.log_row("m", x=1)
    journal.log("m", 2.0)
    metrics()
    journal.log_row("m", x=2)
    journal.log_image("m", "m.png")
    assert metrics() == {
        "m": [1.0, 2.0],
        "m (row)": {"x": [1, 2]},
        "m (image)": "aml://artifactId/ExperimentRun/dcid.r/m.png",
    }


def test_one_name_of_several_runs(database: Database, tmp_path: Path) -> None:
    """B10.66."""
    for run_id in ("a", "b"):
        journal = Journal(tmp_path / run_id)
        journal.log("scale factor", 1)
        journal.log("other", run_id)
        ingest(database, run_id, tmp_path / run_id)
    assert read_metrics(database, ["a", "b", "c"], "scale factor") == {
        "a": {"scale factor": 1},
        "b": {"scale factor": 1},
        "c": {},
    }
    assert read_metrics(database, ["b"])["b"]["other"] == "b"
    many = [f"run {index}" for index in range(1200)]
    assert read_metrics(database, [*many, "a"])["a"]["other"] == "a"


value = st.one_of(
    st.floats(allow_nan=False), st.integers(), st.booleans(), st.none(), st.text(max_size=20), st.floats(width=32)
)
action = st.one_of(
    st.tuples(st.just("log"), value),
    st.tuples(st.just("list"), st.lists(value, max_size=5)),
    st.tuples(st.just("ingest"), st.none()),
)


@settings(max_examples=40, deadline=None)
@given(actions=st.lists(action, max_size=25))
def test_all_values_are_returned_in_order_with_any_ingestion_schedule(actions: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory(prefix="ry-") as name:
        database, folder = Database(Path(name) / "yard.db"), Path(name) / "journal"
        with database.write() as connection:
            metadata.create_all(connection)
        journal = Journal(folder)
        expected: list[Any] = []
        for action, content in actions:
            if action == "log":
                journal.log("m", content)
                expected.append(content)
            elif action == "list":
                journal.log_list("m", content)
                expected += content
            else:
                ingest(database, "r", folder)
        ingest(database, "r", folder)
        metrics = read_metrics(database, ["r"])["r"]
        journal.close()
        database.close()
    kinds = {type(item) for item in expected}
    if len(expected) > 1 and {int, float} <= kinds:
        expected = [_as_float(item) if type(item) is int else item for item in expected]
    if not expected:
        assert metrics == {}
        return
    values = metrics["m"] if len(expected) > 1 else [metrics["m"]]
    assert [(type(item), _same(item)) for item in values] == [(type(item), _same(item)) for item in expected]


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _same(item: Any) -> Any:
    return "nan" if isinstance(item, float) and math.isnan(item) else item


def test_points_are_paged_by_cursor(database: Database, folder: Path, journal: Journal) -> None:
    for index in range(10_000):
        journal.log("loss", float(index), step=index * 10)
        if index in (3, 4000, 9000):
            ingest(database, "r", folder)
    ingest(database, "r", folder)
    values: list[float] = []
    cursor = 0
    while len(part := read_points(database, "r", "loss", after=cursor, limit=777)):
        values += part.values.tolist()
        assert part.steps[0] == cursor * 10
        cursor = part.next
    assert values == [float(index) for index in range(10_000)]
    assert cursor == 10_000
    journal.log("loss", -1.0)
    ingest(database, "r", folder)
    new_points = read_points(database, "r", "loss", after=cursor)
    assert (new_points.values.tolist(), new_points.steps.tolist(), new_points.next) == ([-1.0], [NO_STEP], 10_001)


def test_points_that_are_not_numbers_are_nan(database: Database, folder: Path, journal: Journal) -> None:
    journal.log_list("m", [1, True, 2**70, "x", None, 0.5])
    ingest(database, "r", folder)
    assert str(read_points(database, "r", "m").values.tolist()) == str(
        [1.0, 1.0, float(2**70), math.nan, math.nan, 0.5]
    )


def test_unknown_names_and_tables_have_no_points(database: Database, folder: Path, journal: Journal) -> None:
    journal.log_row("row", x=1)
    ingest(database, "r", folder)
    for name in ("row", "unknown"):
        assert len(read_points(database, "r", name)) == 0
        assert len(read_chart(database, "r", name)) == 0


@pytest.mark.parametrize("count", [0, 1, 900, 5000, 300_000])
def test_a_chart_has_few_points_and_all_peaks(database: Database, folder: Path, journal: Journal, count: int) -> None:
    peaks = {count // 3: 1e6, count // 2: -1e6, count - 1: 2e6}
    for index in range(count):
        journal.log("loss", peaks.get(index, math.nan if index % 7 == 0 else index % 100 * 1.0), step=index)
    ingest(database, "r", folder)
    chart = read_chart(database, "r", "loss", 400)
    assert len(chart) <= max(400, 2)
    assert chart.next == count
    assert chart.steps.tolist() == sorted(chart.steps.tolist())
    if count:
        chart_values = dict(zip(chart.steps.tolist(), chart.values.tolist()))
        assert {index: chart_values[index] for index in peaks} == peaks


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(), max_size=300),
    target=st.integers(min_value=2, max_value=50),
)
def test_downsampling_keeps_minimum_and_maximum(values: list[float], target: int) -> None:
    array = np.array(values, np.float64)
    sample = downsample(Points(np.arange(len(array)), np.arange(len(array)) * 1.0, array, len(array)), target)
    assert len(sample) <= max(target, 2)
    numbers = array[~np.isnan(array)]
    if len(numbers):
        assert np.nanmin(sample.values) == numbers.min()
        assert np.nanmax(sample.values) == numbers.max()
    assert (sample.values == array[sample.steps]).sum() == (~np.isnan(sample.values)).sum()


def test_points_round_trip_through_the_wire_format() -> None:
    points = Points(np.array([NO_STEP, 7]), np.array([1.5, 2.5]), np.array([math.inf, -0.0]), 12)
    decoded = decode_points(encode_points(points))
    assert (list(decoded.steps), list(decoded.times), decoded.next) == ([NO_STEP, 7], [1.5, 2.5], 12)
    assert decoded.values.tobytes() == points.values.tobytes()


@pytest.mark.parametrize("damage", [b"", b"<html>", encode_points(Points(np.arange(2), np.zeros(2), np.zeros(2)))[:-1]])
def test_damaged_points_are_refused(damage: bytes) -> None:
    with pytest.raises(RunyardException):
        decode_points(damage)
