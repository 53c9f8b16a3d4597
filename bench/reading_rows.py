"""Reading of metrics through the API."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from pathlib import Path

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Size
from bench.sandbox import Sandbox, script_config, wait_for
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


def reading(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    few, many = size.scaled(100_000), size.scaled(1_000_000)
    folder = sandbox.project("reading", train=_LOG)
    run = wait_for(sandbox.experiment("reading").submit(script_config(folder, "train.py", few, many)))
    connection = run.experiment.workspace.connection
    numbers = sandbox.root / "array"
    numbers.write_bytes(bytes(array("d", range(3 * few))))
    rows = _sqlite_rows(sandbox.root / "rows.db", few)

    def read(name: str, **query: int) -> WirePoints:
        return decode_points(connection.read(f"/api/runs/{run.id}/metrics/{name}", **query))

    def from_file() -> None:
        array("d").frombytes(numbers.read_bytes())

    assert len(read("loss").values) == few
    times = measure_rounds(
        {
            "array": timed(from_file),
            "sqlite": timed(lambda: rows.execute("SELECT step, time, value FROM points").fetchall()),
            "points": timed(lambda: read("loss")),
            "chart": timed(lambda: read("long", most=_WIDTH)),
            "json": timed(lambda: run.get_metrics("loss")),
        },
        size.rounds,
    )
    rows.close()
    baseline = ("array from a file", times["array"])
    peers = {"rows of bare SQLite": times["sqlite"]}
    yield Row(f"read a metric of {few:,} points through the API", times["points"], baseline, Goal(0.015), peers=peers)
    yield Row("the same with `run.get_metrics(name)`, decoded", times["json"], baseline)
    yield Row(f"chart of {many:,} points, reduced to {_WIDTH:,}", times["chart"], goal=Goal(0.030))


def _sqlite_rows(path: Path, count: int) -> sqlite3.Connection:
    rows = sqlite3.connect(path)
    rows.execute("CREATE TABLE points (step INTEGER, time REAL, value REAL)")
    rows.executemany("INSERT INTO points VALUES (?, 0.0, 0.5)", ((index,) for index in range(count)))
    rows.commit()
    return rows
