"""Listing runs through the API: all with their last metrics, a page by query and order, and whether many cost more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from bench.place import Place, as_it_is, stop_yard, to_the_end
from bench.row import Goal, Row, Size
from bench.turns import in_turns, seconds_of
from runyard.client.connection import Connection

_FEW = 10
_PAGE = 100
_QUERY = "status:completed lr>0.3 fold:7,8 metrics.m1<0.9"
_PLAIN = """
SELECT r.*, s.name, s.last FROM runs r JOIN series s ON s.run_id = r.run_id ORDER BY r.number DESC
"""


def listing(place: Place, size: Size) -> Iterator[Row]:
    many = size.of(10_000, 2 * _PAGE)
    folder = place.project(
        "listing", train="from runyard import Run\nfor n in range(5): Run.get_context().log(f'm{n}', 1)"
    )
    to_the_end(place.experiment("listing").submit(as_it_is(folder, "train.py", "--lr", 0.1)))
    connection = Connection()

    def views(limit: int) -> float:
        return seconds_of(lambda: connection.get("/api/runs", limit=limit))()

    def rows(limit: int, **query: str) -> float:
        return seconds_of(lambda: connection.get("/api/runs/table", limit=limit, **query))()

    multiply(place, _FEW)
    few = in_turns({"views": lambda: views(_FEW), "rows": lambda: rows(_FEW)}, size.rounds)
    multiply(place, many)
    found = connection.get("/api/runs/table", limit=many)["rows"]
    assert len(found) == many
    assert len(found[0]["metrics"]) == 5
    plain = sqlite3.connect(place.home / "yard.db")
    times = in_turns(
        {
            "sqlite": seconds_of(lambda: plain.execute(_PLAIN).fetchall()),
            "all": lambda: rows(many),
            "bytes": seconds_of(lambda: connection.read("/api/runs/table", limit=many)),
            "page": lambda: rows(_PAGE, query=_QUERY, sort="-metrics.m0"),
            "views": lambda: views(_PAGE),
            "few rows": lambda: rows(_FEW),
            "few views": lambda: views(_FEW),
        },
        size.rounds,
    )
    plain.close()
    beside = ("rows of bare SQLite", times["sqlite"])
    yield Row(f"list {many:,} runs with five last metrics each, through the API", times["all"], beside, Goal(0.100))
    yield Row("the same, as bytes for a browser", times["bytes"], beside)
    yield Row(f"a page of {_PAGE} of them by query and order", times["page"], goal=Goal(0.010))
    yield Row(f"a page of {_PAGE} whole descriptions", times["views"])
    for kind in ("rows", "views"):
        yield Row(
            f"a page of {_FEW} {kind} among {many:,} runs",
            times[f"few {kind}"],
            (f"among {_FEW} runs", few[kind]),
            Goal(1.5, times=True),
        )


def multiply(place: Place, count: int) -> None:
    """The one run that really ran, many times over, with its labels and metrics; the yard is away meanwhile."""
    stop_yard(place.home)
    database = sqlite3.connect(place.home / "yard.db")
    try:
        have = database.execute("SELECT count(*) FROM runs").fetchone()[0]
        for table in ("runs", "tags", "properties", "params", "series", "changes"):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            columns = [name for name in columns if name not in ("number", "series_id", "change")]
            said = ", ".join(
                "t.run_id || '_' || n" if name in ("run_id", "root_id") else f't."{name}"' for name in columns
            )
            names = ", ".join(f'"{name}"' for name in columns)
            database.execute(
                f"WITH RECURSIVE numbers(n) AS (SELECT {have} UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
                f"INSERT INTO {table} ({names}) SELECT {said} FROM numbers, {table} t "
                "WHERE t.run_id = (SELECT run_id FROM runs ORDER BY number LIMIT 1)",
                (count - 1,),
            )
        database.execute("INSERT OR IGNORE INTO tags SELECT run_id, 'fold', CAST(number % 20 AS TEXT) FROM runs")
        database.execute("UPDATE series SET last = abs(random() % 100000) / 100000.0")
        database.execute("UPDATE params SET value = CAST(abs(random() % 1000) / 1000.0 AS TEXT)")
        database.commit()
    finally:
        database.close()
