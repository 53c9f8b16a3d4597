"""Listing runs through the API: all, a page, and whether a page costs more when there are many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from bench.place import Place, as_it_is, stop_yard, to_the_end
from bench.row import Goal, Row, Size
from bench.turns import in_turns, seconds_of
from runyard.client.transport import Connection

_FEW = 10
_PAGE = 100


def listing(place: Place, size: Size) -> Iterator[Row]:
    many = size.of(10_000, 2 * _PAGE)
    folder = place.project(
        "listing", train="from runyard import Run\nfor n in range(5): Run.get_context().log(f'm{n}', 1)"
    )
    to_the_end(place.experiment("listing").submit(as_it_is(folder, "train.py")))
    connection = Connection()

    def page_of(limit: int, **query: str) -> float:
        return seconds_of(lambda: connection.get("/api/runs", limit=limit, **query))()

    _multiply(place, _FEW)
    few = in_turns({"page": lambda: page_of(_FEW)}, size.rounds)["page"]
    _multiply(place, many)
    assert len(connection.get("/api/runs", limit=many)["runs"]) == many
    rows = sqlite3.connect(place.home / "yard.db")
    times = in_turns(
        {
            "sqlite": seconds_of(lambda: rows.execute("SELECT * FROM runs ORDER BY number DESC").fetchall()),
            "all": lambda: page_of(many),
            "page": lambda: page_of(_PAGE),
            "filtered": lambda: page_of(_PAGE, status="Completed", tags='{"fold": "7"}'),
            "few": lambda: page_of(_FEW),
        },
        size.rounds,
    )
    rows.close()
    beside = ("rows of bare SQLite", times["sqlite"])
    yield Row(f"list {many:,} runs through the API", times["all"], beside, Goal(0.100))
    yield Row(f"a page of {_PAGE} of them", times["page"], goal=Goal(0.010))
    yield Row(f"a page of {_PAGE} by status and tag", times["filtered"], goal=Goal(0.010))
    yield Row(
        f"a page of {_FEW} among {many:,} runs",
        times["few"],
        (f"among {_FEW} runs", few),
        Goal(1.5, times=True),
    )


def _multiply(place: Place, count: int) -> None:
    """The one run that really ran, many times over, with its labels and metrics; the yard is away meanwhile."""
    stop_yard(place.home)
    database = sqlite3.connect(place.home / "yard.db")
    try:
        have = database.execute("SELECT count(*) FROM runs").fetchone()[0]
        for table in ("runs", "tags", "properties", "series"):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            columns = [name for name in columns if name not in ("number", "series_id")]
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
        database.commit()
    finally:
        database.close()
