"""Reading what was logged, through the API, as another client does."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from pathlib import Path

from bench.place import Place, as_it_is, to_the_end
from bench.row import Goal, Row, Size
from bench.turns import in_turns, seconds_of
from runyard.wire.points import WirePoints, decode_points

_LOG = """\
import math, sys
from runyard import Run

run = Run.get_context()
few, many = int(sys.argv[1]), int(sys.argv[2])
for index in range(few):
    run.log("loss", index * 0.5, step=index)
for index in range(many):
    run.log("long", math.sin(index / 1000))
"""
_WIDTH = 1_000


def reading(place: Place, size: Size) -> Iterator[Row]:
    few, many = size.of(100_000), size.of(1_000_000)
    folder = place.project("reading", train=_LOG)
    run = to_the_end(place.experiment("reading").submit(as_it_is(folder, "train.py", few, many)))
    connection = run.experiment.workspace.connection
    numbers = place.root / "array"
    numbers.write_bytes(bytes(array("d", range(3 * few))))
    rows = _sqlite_rows(place.root / "rows.db", few)

    def read(name: str, **query: int) -> WirePoints:
        return decode_points(connection.read(f"/api/runs/{run.id}/metrics/{name}", **query))

    def from_file() -> None:
        array("d").frombytes(numbers.read_bytes())

    assert len(read("loss").values) == few
    times = in_turns(
        {
            "array": seconds_of(from_file),
            "sqlite": seconds_of(lambda: rows.execute("SELECT step, time, value FROM points").fetchall()),
            "points": seconds_of(lambda: read("loss")),
            "chart": seconds_of(lambda: read("long", most=_WIDTH)),
            "json": seconds_of(lambda: run.get_metrics("loss")),
        },
        size.rounds,
    )
    rows.close()
    beside = ("array from a file", times["array"])
    peers = {"rows of bare SQLite": times["sqlite"]}
    yield Row(f"read a metric of {few:,} points through the API", times["points"], beside, Goal(0.015), peers=peers)
    yield Row("the same by `run.get_metrics(name)`, as numbers", times["json"], beside)
    yield Row(f"chart of {many:,} points, {_WIDTH:,} wide", times["chart"], goal=Goal(0.030))


def _sqlite_rows(path: Path, count: int) -> sqlite3.Connection:
    rows = sqlite3.connect(path)
    rows.execute("CREATE TABLE points (step INTEGER, time REAL, value REAL)")
    rows.executemany("INSERT INTO points VALUES (?, 0.0, 0.5)", ((index,) for index in range(count)))
    rows.commit()
    return rows
