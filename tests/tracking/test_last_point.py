"""The last point of a metric: the highest step, then the highest time, then the highest value."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.context.journal import Journal
from runyard.store.database import Database
from runyard.store.schema import metadata
from runyard.tracking.blocks import BLOCK_POINTS
from runyard.tracking.external_points import Point, add_points, last_points, last_points_of_runs
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_last, read_metrics
from runyard.tracking.series_index import list_series
from runyard.wire.points import NO_STEP

Metrics = Callable[[], dict[str, Any]]
POINTS = st.lists(
    st.builds(
        Point,
        st.integers(-3, 3),
        st.sampled_from([0.0, 1.5, 2.5]),
        st.one_of(st.sampled_from([0.25, -1.0, math.inf, -math.inf, math.nan]), st.floats(-5, 5)),
    ),
    min_size=1,
    max_size=30,
)


def last_values(database: Database, run_id: str = "r") -> set[str]:
    """The last value of the metric ``loss`` as each reader returns it; text, because NaN is not equal to itself."""
    (info,) = list_series(database, run_id)
    points = last_points(database, run_id)["loss"], last_points_of_runs(database, [run_id])[run_id]["loss"]
    values = (info.last, read_last(database, run_id)["loss"], *(point.value for point in points))
    return {repr(float(value)) for value in values}


@pytest.fixture(scope="module")
def large_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One database for all generated examples."""
    database = Database(tmp_path_factory.mktemp("examples") / "yard.db")
    with database.write() as connection:
        metadata.create_all(connection)
    yield database
    database.close()


@settings(max_examples=30, deadline=None)
@given(POINTS, st.lists(st.integers(1, 9), max_size=5), st.randoms(use_true_random=False))
def test_the_order_in_which_points_arrive_does_not_matter(
    large_database: Database, points: list[Point], sizes: list[int], order: random.Random
) -> None:
    run_id = os.urandom(8).hex()
    expected = max(points, key=lambda point: (point.step, point.time, _comparable(point.value)))
    order.shuffle(points)
    for part in _split(points, sizes):
        add_points(large_database, run_id, {"loss": part})
    assert last_values(large_database, run_id) == {repr(expected.value)}
    last = last_points(large_database, run_id)["loss"], last_points_of_runs(large_database, [run_id])[run_id]["loss"]
    assert [(point.step, point.time) for point in last] == [(expected.step, expected.time)] * 2


def _comparable(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _split(points: Sequence[Point], sizes: list[int]) -> list[Sequence[Point]]:
    parts = []
    for size in sizes:
        parts.append(points[:size])
        points = points[size:]
    return [part for part in (*parts, points) if part]


def test_the_last_point_may_be_in_an_early_block(database: Database) -> None:
    add_points(database, "r", {"loss": [Point(10**6, 1.0, 0.5)]})
    for begin in range(0, 2 * BLOCK_POINTS, 1000):
        add_points(database, "r", {"loss": [Point(begin + i, 2.0, float(i)) for i in range(1000)]})
    assert last_values(database) == {"0.5"}


def test_values_without_steps_count_in_the_order_of_logging(database: Database, folder: Path, journal: Journal) -> None:
    for value, time in ((3.0, 300.0), (1.0, 100.0), (2.0, 200.0)):  # the clock was set back
        journal.log_at("loss", value, time)
        ingest(database, "r", folder)
        assert last_values(database) == {repr(value)}
    point = last_points(database, "r")["loss"]
    assert (point.step, point.time) == (2, 200.0)


def test_the_last_of_a_list_is_its_last_value(database: Database, folder: Path, journal: Journal) -> None:
    journal.log_list("loss", [3.0, 9.0, 1.0])
    ingest(database, "r", folder)
    assert last_values(database) == {"1.0"}


def test_logged_steps_decide_over_the_order_of_logging(database: Database, folder: Path, journal: Journal) -> None:
    for step, value in ((5, 0.5), (7, 0.7), (6, 0.6)):
        journal.log("loss", value, step=step)
        ingest(database, "r", folder)
    assert last_values(database) == {"0.7"}
    assert read_metrics(database, ["r"])["r"]["loss"] == [0.5, 0.7, 0.6]


@pytest.mark.parametrize("is_split", [True, False])
def test_a_value_without_a_step_takes_the_highest_step_until_then(
    database: Database, folder: Path, journal: Journal, is_split: bool
) -> None:
    def log(value: float, step: int | None = None) -> None:
        journal.log("loss", value, step=step)
        if is_split:
            ingest(database, "r", folder)

    def last() -> set[str]:
        ingest(database, "r", folder)
        return last_values(database)

    log(0.9, step=100)
    log(0.8, step=200)
    log(0.7)
    assert last() == {"0.7"}
    log(0.6, step=150)
    assert last() == {"0.7"}
    log(0.5, step=200)
    assert last() == {"0.5"}
    log(0.4)
    log(0.3, step=1)
    assert last() == {"0.4"}


def test_values_of_other_kinds_have_a_last_value_too(database: Database, folder: Path, journal: Journal) -> None:
    for name, values in {"text": ["b", "a"], "none": [1, None], "flag": [False, True], "big": [1, 2**70]}.items():
        for step, value in enumerate(values):
            journal.log(name, value, step=step)
    journal.log_row("row", x=1, y=2)
    journal.log_row("row", x=3, y=4)
    ingest(database, "r", folder)
    expected = {"text": "a", "none": None, "flag": True, "big": 2**70, "row": {"x": 3, "y": 4}}
    assert read_last(database, "r") == expected
    assert last_points_of_runs(database, ["r"])["r"].keys() == {"flag", "big"}
    journal.log("text", "c", step=0)
    ingest(database, "r", folder)
    assert read_last(database, "r") == expected


def test_the_last_point_of_a_series_without_steps_has_its_index_as_step(database: Database) -> None:
    add_points(database, "r", {"loss": [Point(NO_STEP, 1.0, 0.5), Point(NO_STEP, 2.0, 0.25)]})
    assert last_points(database, "r")["loss"] == Point(1, 2.0, 0.25)
    assert last_points_of_runs(database, ["r"])["r"]["loss"] == Point(1, 2.0, 0.25)
