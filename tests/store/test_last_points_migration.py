"""Homes of earlier versions, in which the last value was the one that was stored last."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from runyard.context.journal import Journal
from runyard.store.open_store import open_database
from runyard.tracking.external_points import Point, add_points, last_points
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_last, read_points
from runyard.tracking.series_index import list_series
from runyard.wire.points import NO_STEP


def forget_last_points(path: Path) -> None:
    """Make the database one of the version before, which had the last stored values."""
    with sqlite3.connect(path) as connection:
        for column in ("last_index", "last_step", "last_time"):
            connection.execute(f"ALTER TABLE series DROP COLUMN {column}")
        for column in ("minimum_step", "maximum_step", "minimum_time", "maximum_time"):
            connection.execute(f"ALTER TABLE blocks DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = '0011'")
        connection.execute("UPDATE series SET last = ? WHERE name LIKE 'loss%'", (json.dumps(-1.5),))
    connection.close()


def test_an_upgrade_determines_the_last_points(tmp_path: Path) -> None:
    path, folder = tmp_path / "yard.db", tmp_path / "journal"
    database = open_database(path)
    points = [Point(step, 10.0 * step, step / 8) for step in [*range(9000), 20_000, *range(9000, 9500)]]
    for begin in range(0, len(points), 1000):
        add_points(database, "r", {"loss": points[begin : begin + 1000]})
    add_points(database, "r", {"loss of a step": [Point(1, 3.0, 0.5), Point(1, 4.0, 0.25), Point(1, 2.0, -1.5)]})
    add_points(database, "r", {"loss without steps": [Point(NO_STEP, 9.0, 0.5), Point(NO_STEP, 8.0, -1.5)]})
    journal = Journal(folder)
    for name, values in {"text": ["b", "a"], "big": [2**70, 1], "flag": [True, False], "none": [None, 2]}.items():
        for step, value in enumerate(values):
            journal.log(name, value, step=-step)
    journal.log_row("row", x=1)
    ingest(database, "r", folder)
    last, exact, series = read_last(database, "r"), last_points(database, "r"), list_series(database, "r")
    assert last["loss"] == 2500.0
    assert [last[name] for name in ("text", "big", "flag", "none")] == ["b", 2**70, True, None]
    database.close()
    forget_last_points(path)

    database = open_database(path)
    assert read_last(database, "r") == last
    assert last_points(database, "r") == exact
    assert list_series(database, "r") == series
    add_points(database, "r", {"loss": [points[17], Point(20_000, 200_001.0, 7.5)]})
    assert read_last(database, "r")["loss"] == 7.5
    assert len(read_points(database, "r", "loss")) == len(points) + 1
    database.close()
