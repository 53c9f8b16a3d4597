"""Points for charts: whole or a window of it, and only what is new."""

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
from runyard.tracking.series_index import place_of, series_counts, series_of, system_run
from runyard.wire.points import decode_points
from studio_support import columns_of

LONG = 50_000
BEGAN = 1000.0
WHOLE = Window()


@pytest.fixture
def long(database: Database) -> Database:
    """The series `wave` of run `r`: a hundredth of a second apart, with one peak in the middle."""
    steps = np.arange(LONG, dtype=np.int64) * 10
    values = np.sin(steps / 1000.0)
    values[LONG // 2] = 99.0
    with database.write() as connection:
        append(connection, "r", {"wave": columns_of(steps, values, BEGAN)}, {})
    return database


def test_the_whole_of_a_long_series_keeps_its_peak(long: Database) -> None:
    points = read_series(long, "r", "wave", WHOLE, most=1000)
    assert 500 < len(points) <= 1000
    assert points.values.max() == 99.0
    assert points.next == LONG


@pytest.mark.parametrize(
    "window",
    [
        Window("step", 100_000, 101_000),
        Window("time", BEGAN + 100.0, BEGAN + 101.0),
        Window("relative", 90.0, 91.0, origin=BEGAN + 10.0),
    ],
    ids=lambda window: window.axis,
)
def test_a_window_is_read_in_full_detail_with_a_neighbour_on_each_side(long: Database, window: Window) -> None:
    points = read_series(long, "r", "wave", window, most=1000)
    assert points.steps[0] == 100_000 - 10
    assert points.steps[-1] == 101_000 + 10
    assert len(points) == 103


@pytest.mark.parametrize("order", ["up", "down", "up with a last part that is small"])
def test_a_window_holds_the_same_points_however_they_lie_in_the_series(database: Database, order: str) -> None:
    steps = np.arange(30_000, dtype=np.int64)
    steps = steps[::-1].copy() if order == "down" else steps
    with database.write() as connection:
        append(connection, "r", {"s": columns_of(steps, steps * 1.0, BEGAN)}, {})
        if "small" in order:
            append(connection, "r", {"s": columns_of(np.arange(30_000, 30_050), np.arange(50.0), BEGAN + 9e6)}, {})
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
        found = read_series(database, "r", "s", Window("step", begin, end), most=10**6)
        low, high = -1 if begin is None else begin, 10**6 if end is None else end
        inside = {step for step in range(total) if low <= step <= high}
        assert inside <= set(found.steps.tolist())
        assert len(found) <= len(inside) + 2
        assert found.next == total


def test_a_wide_window_is_thinned_and_keeps_its_peak(long: Database) -> None:
    points = read_series(long, "r", "wave", Window("step", 100_000, None), most=200)
    assert len(points) <= 200
    assert points.values.max() == 99.0


def test_a_window_beside_the_series_is_empty(long: Database) -> None:
    assert len(read_series(long, "r", "wave", Window("step", 10**9, 10**10), most=100)) == 0


def test_without_steps_the_place_in_the_series_is_the_step(database: Database, folder: Path, journal: Journal) -> None:
    for value in range(100):
        journal.log("loss", float(value))
    ingest(database, "r", folder)
    assert read_series(database, "r", "loss", Window("step", 10, 12), most=100).values.tolist() == [9, 10, 11, 12, 13]


def test_only_what_came_since_travels(long: Database) -> None:
    first = read_series(long, "r", "wave", WHOLE, most=100)
    assert len(read_series(long, "r", "wave", WHOLE, most=100, after=first.next)) == 0
    with long.write() as connection:
        append(connection, "r", {"wave": columns_of(np.arange(3), np.array([1.0, 2.0, 3.0]), 9.0)}, {})
    news = read_series(long, "r", "wave", WHOLE, most=100, after=first.next)
    assert news.values.tolist() == [1.0, 2.0, 3.0]
    assert news.next == LONG + 3


def test_an_axis_that_nobody_knows_is_named() -> None:
    with pytest.raises(UserErrorException, match="no axis 'depth'"):
        Window("depth")


def test_a_bundle_is_blocks_with_their_lengths(long: Database) -> None:
    series = [read_series(long, "r", name, WHOLE, most=10) for name in ("wave", "nothing")]
    data = bundle(series)
    (count,) = struct.unpack_from("<I", data)
    at, found = 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        found.append(decode_points(data[at + 4 : at + 4 + length]))
        at += 4 + length
    assert at == len(data)
    assert [points.values.tolist() for points in found] == [points.values.tolist() for points in series]


def test_the_catalogue_tells_kind_count_and_range(long: Database, folder: Path, journal: Journal) -> None:
    journal.log_row("row", a=1, b=2)
    ingest(long, "r", folder)
    wave, row = series_of(long, "r")
    assert (wave.name, wave.kind, wave.count, wave.max) == ("wave", "scalar", LONG, 99.0)
    assert (row.name, row.kind, row.count, row.last, row.min) == ("row", "row", 1, {"a": 1, "b": 2}, None)
    assert series_counts(long, "r") == {"wave": LONG, "row": 1}


def test_what_agents_measured_is_found_under_system_unless_a_script_logged_that(database: Database) -> None:
    assert place_of(database, "r", "system/local/cpu") == (system_run("r"), "local/cpu")
    assert place_of(database, "r", "loss") == ("r", "loss")
    with database.write() as connection:
        append(connection, "r", {"system/local/cpu": columns_of(np.arange(1), np.array([1.0]), 0.0)}, {})
    assert place_of(database, "r", "system/local/cpu") == ("r", "system/local/cpu")
