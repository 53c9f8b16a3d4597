"""Points for charts: complete series, windows, and new points after a cursor."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from runyard.context.journal import Journal
from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.tracking.charts import Window, bundle, read_series
from runyard.tracking.ingest import ingest
from runyard.tracking.series import append
from runyard.tracking.series_index import list_series, locate_series, series_counts, system_run_id
from runyard.wire.points import NO_STEP, decode_points
from studio_support import columns_of

LONG = 50_000
STARTED_AT = 1000.0
UNBOUNDED = Window()


@pytest.fixture
def long(database: Database) -> Database:
    """The series `wave` of run `r`: a hundredth of a second apart, with one peak in the middle."""
    steps = np.arange(LONG, dtype=np.int64) * 10
    values = np.sin(steps / 1000.0)
    values[LONG // 2] = 99.0
    with database.write() as connection:
        append(connection, "r", {"wave": columns_of(steps, values, STARTED_AT)}, {})
    return database


def test_a_downsampled_series_contains_its_peak(long: Database) -> None:
    points = read_series(long, "r", "wave", UNBOUNDED, max_points=1000)
    assert 500 < len(points) <= 1000
    assert points.values.max() == 99.0
    assert points.next == LONG


@pytest.mark.parametrize("max_points", [100, 1000])  # from summaries, and from all points
def test_a_downsampled_series_contains_the_first_point_of_each_nan_and_infinity(
    database: Database, max_points: int
) -> None:
    steps = np.arange(LONG, dtype=np.int64)
    values = np.sin(steps / 100.0)
    values[10_007] = np.nan
    values[20_003:20_903] = np.inf
    values[30_001] = -np.inf
    values[30_002] = np.nan
    with database.write() as connection:
        append(connection, "r", {"loss": columns_of(steps, values, STARTED_AT)}, {})
    points = read_series(database, "r", "loss", UNBOUNDED, max_points=max_points)
    marks = dict(zip(points.steps[~np.isfinite(points.values)].tolist(), points.values[~np.isfinite(points.values)]))
    assert {10_007, 20_003, 30_001, 30_002} <= set(marks)
    assert np.isnan(marks[10_007])
    assert marks[20_003] == np.inf
    assert marks[30_001] == -np.inf
    assert max_points / 2 < len(points) <= max_points
    finite = points.values[np.isfinite(points.values)]
    assert finite.max() > 0.99
    zoomed = read_series(database, "r", "loss", Window("step", 29_000, 31_000), max_points=100)
    assert {30_001, 30_002} <= set(zoomed.steps[~np.isfinite(zoomed.values)].tolist())


def test_a_downsampled_point_without_step_has_its_index(database: Database) -> None:
    values = np.zeros(LONG)
    values[20_123] = np.nan
    values[-1] = 1.0
    with database.write() as connection:
        append(connection, "r", {"loss": columns_of(np.full(LONG, NO_STEP), values, STARTED_AT)}, {})
    points = read_series(database, "r", "loss", UNBOUNDED, max_points=1000)
    assert points.steps[np.isnan(points.values)].tolist() == [20_123]
    assert points.steps[-1] == LONG - 1
    assert len(set(points.steps.tolist())) == len(points)


def test_a_series_that_alternates_with_nan_is_downsampled(database: Database) -> None:
    steps = np.arange(LONG, dtype=np.int64)
    values = np.where(steps % 2 == 0, np.nan, steps.astype(np.float64))
    with database.write() as connection:
        append(connection, "r", {"loss": columns_of(steps, values, STARTED_AT)}, {})
    assert len(read_series(database, "r", "loss", UNBOUNDED, max_points=1000)) <= 1000


@pytest.mark.parametrize(
    "window",
    [
        Window("step", 100_000, 101_000),
        Window("time", STARTED_AT + 100.0, STARTED_AT + 101.0),
        Window("relative", 90.0, 91.0, origin=STARTED_AT + 10.0),
    ],
    ids=lambda window: window.axis,
)
def test_a_window_has_all_points_and_one_neighbor_on_each_side(long: Database, window: Window) -> None:
    points = read_series(long, "r", "wave", window, max_points=1000)
    assert points.steps[0] == 100_000 - 10
    assert points.steps[-1] == 101_000 + 10
    assert len(points) == 103


@pytest.mark.parametrize("order", ["up", "down", "up with a small last block"])
def test_a_window_has_the_same_points_in_any_order_of_the_series(database: Database, order: str) -> None:
    steps = np.arange(30_000, dtype=np.int64)
    steps = steps[::-1].copy() if order == "down" else steps
    with database.write() as connection:
        append(connection, "r", {"s": columns_of(steps, steps * 1.0, STARTED_AT)}, {})
        if "small" in order:
            append(connection, "r", {"s": columns_of(np.arange(30_000, 30_050), np.arange(50.0), STARTED_AT + 9e6)}, {})
    total = 30_050 if "small" in order else 30_000
    for begin, end in (
        (0, 10),
        (4095, 4097),
        (8191.5, 8192.5),
        (12_000, 20_000),
        (29_990, 40_000),
        (-5, None),
        (None, 3),
    ):
        points = read_series(database, "r", "s", Window("step", begin, end), max_points=10**6)
        low, high = -1 if begin is None else begin, 10**6 if end is None else end
        inside = {step for step in range(total) if low <= step <= high}
        assert inside <= set(points.steps.tolist())
        assert len(points) <= len(inside) + 2
        assert points.next == total


def test_a_wide_window_is_downsampled_and_contains_its_peak(long: Database) -> None:
    points = read_series(long, "r", "wave", Window("step", 100_000, None), max_points=200)
    assert len(points) <= 200
    assert points.values.max() == 99.0


def test_a_window_outside_the_series_is_empty(long: Database) -> None:
    assert len(read_series(long, "r", "wave", Window("step", 10**9, 10**10), max_points=100)) == 0


def test_missing_steps_are_replaced_by_the_index(database: Database, folder: Path, journal: Journal) -> None:
    for value in range(100):
        journal.log("loss", float(value))
    ingest(database, "r", folder)
    points = read_series(database, "r", "loss", Window("step", 10, 12), max_points=100)
    assert points.values.tolist() == [9, 10, 11, 12, 13]


def test_only_points_after_the_cursor_are_returned(long: Database) -> None:
    first = read_series(long, "r", "wave", UNBOUNDED, max_points=100)
    assert len(read_series(long, "r", "wave", UNBOUNDED, max_points=100, after=first.next)) == 0
    with long.write() as connection:
        append(connection, "r", {"wave": columns_of(np.arange(3), np.array([1.0, 2.0, 3.0]), 9.0)}, {})
    new_points = read_series(long, "r", "wave", UNBOUNDED, max_points=100, after=first.next)
    assert new_points.values.tolist() == [1.0, 2.0, 3.0]
    assert new_points.next == LONG + 3


def test_an_unknown_axis_raises() -> None:
    with pytest.raises(UserErrorException, match="unknown axis 'depth'"):
        Window("depth")


def test_a_bundle_has_length_prefixed_blocks(long: Database) -> None:
    series = [read_series(long, "r", name, UNBOUNDED, max_points=10) for name in ("wave", "nothing")]
    data = bundle(series)
    (count,) = struct.unpack_from("<I", data)
    position, decoded = 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, position)
        decoded.append(decode_points(data[position + 4 : position + 4 + length]))
        position += 4 + length
    assert position == len(data)
    assert [points.values.tolist() for points in decoded] == [points.values.tolist() for points in series]


def test_list_series_returns_kind_count_and_range(long: Database, folder: Path, journal: Journal) -> None:
    journal.log_row("row", a=1, b=2)
    ingest(long, "r", folder)
    wave, row = list_series(long, "r")
    assert (wave.name, wave.kind, wave.count, wave.max) == ("wave", "scalar", LONG, 99.0)
    assert (row.name, row.kind, row.count, row.last, row.min) == ("row", "row", 1, {"a": 1, "b": 2}, None)
    assert series_counts(long, "r") == {"wave": LONG, "row": 1}


def test_a_last_value_that_json_lacks_is_a_string(database: Database) -> None:
    for name, value in (("a", np.nan), ("b", np.inf)):
        with database.write() as connection:
            append(connection, "r", {name: columns_of(np.zeros(1, np.int64), np.array([value]), STARTED_AT)}, {})
    assert [series.last for series in list_series(database, "r")] == ["NaN", "Infinity"]


def test_system_metrics_are_located_unless_a_script_logged_the_name(database: Database) -> None:
    assert locate_series(database, "r", "system/local/cpu") == (system_run_id("r"), "local/cpu")
    assert locate_series(database, "r", "loss") == ("r", "loss")
    with database.write() as connection:
        append(connection, "r", {"system/local/cpu": columns_of(np.arange(1), np.array([1.0]), 0.0)}, {})
    assert locate_series(database, "r", "system/local/cpu") == ("r", "system/local/cpu")
