"""Points that a client sends again are stored once."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.engine import Engine

from runyard.context.journal import Journal
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import BLOCK_POINTS
from runyard.tracking.external_points import Point, add_points
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_metrics, read_points

TWO_BLOCKS = [Point(index, 1000.0 + index, index / 7) for index in range(2 * BLOCK_POINTS + 100)]


def count(database: Database, name: str = "loss") -> int:
    return len(read_points(database, "r", name))


def fill(database: Database) -> None:
    for begin in range(0, len(TWO_BLOCKS), 1000):
        add_points(database, "r", {"loss": TWO_BLOCKS[begin : begin + 1000]})


def test_a_batch_that_is_sent_again_is_stored_once(database: Database) -> None:
    batch = {"loss": TWO_BLOCKS[:50], "accuracy": TWO_BLOCKS[:20]}
    for _ in range(3):
        add_points(database, "r", batch)
    assert (count(database), count(database, "accuracy")) == (50, 20)
    add_points(database, "r", {"loss": TWO_BLOCKS[40:60]})
    assert read_points(database, "r", "loss").steps.tolist() == list(range(60))


def test_points_of_any_age_are_recognized(database: Database) -> None:
    fill(database)
    fill(database)
    add_points(database, "r", {"loss": [TWO_BLOCKS[3], TWO_BLOCKS[BLOCK_POINTS + 3], TWO_BLOCKS[-1]]})
    assert read_points(database, "r", "loss").values.tolist() == [point.value for point in TWO_BLOCKS]


def test_points_that_differ_in_one_number_are_all_stored(database: Database) -> None:
    points = [Point(1, 2.0, 3.0), Point(2, 2.0, 3.0), Point(1, 2.001, 3.0), Point(1, 2.0, 3.5)]
    for point in points:
        add_points(database, "r", {"loss": [point]})
    add_points(database, "r", {"loss": points[::-1]})
    assert count(database) == 4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 0.0])
def test_special_values_are_recognized(database: Database, value: float) -> None:
    points = [Point(1, 2.0, value), Point(1, 2.0, 1.0)]
    add_points(database, "r", {"loss": [points[0], *points]})
    add_points(database, "r", {"loss": [*points, Point(1, 2.0, value + 0.0)]})
    assert count(database) == 2


def test_clients_that_send_the_same_batch_at_once_store_it_once(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: add_points(database, "r", {"loss": TWO_BLOCKS[:100]}), range(24)))
    assert count(database) == 100


def test_points_beside_rows_of_the_same_name_are_recognized(database: Database, folder: Path, journal: Journal) -> None:
    journal.log_row("loss", x=1)
    ingest(database, "r", folder)
    for _ in range(2):
        add_points(database, "r", {"loss": [Point(1, 2.0, 3.0), Point(2, 2.0, 4.0)]})
    assert read_metrics(database, ["r"])["r"] == {"loss": {"x": 1}, "loss (scalar)": [3.0, 4.0]}


def test_equal_values_of_a_script_are_all_stored(database: Database, folder: Path, journal: Journal) -> None:
    for _ in range(3):
        journal.log_at("loss", 0.5, 100.0, step=1)
    ingest(database, "r", folder)
    assert count(database) == 3


def test_blocks_without_ranges_are_searched(database: Database) -> None:
    fill(database)
    columns = ("minimum_step", "maximum_step", "minimum_time", "maximum_time")
    with database.write() as connection:
        connection.execute(update(schema.blocks).values(dict.fromkeys(columns)))
    fill(database)
    assert count(database) == len(TWO_BLOCKS)


def test_new_points_are_stored_without_reading_full_blocks(database: Database) -> None:
    fill(database)
    statements: list[str] = []

    def record(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SELECT blocks.data"):
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    try:
        # constant times, so that only the steps distinguish the points, then constant steps
        add_points(database, "r", {"loss": [Point(10**6, 1000.0, 0.5), Point(0, 10**6, 0.5)]})
        assert not [statement for statement in statements if "blocks.data" in statement]
        add_points(database, "r", {"loss": [TWO_BLOCKS[5]]})
        assert len(statements) == 1
    finally:
        event.remove(Engine, "before_cursor_execute", record)
    assert count(database) == len(TWO_BLOCKS) + 2
