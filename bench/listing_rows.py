"""Listing of runs through the API: all of them, one page with a query, and pages among few and many runs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Size
from bench.sandbox import Sandbox, script_config, stop_yard, wait_for
from runyard.client.connection import Connection

_FEW = 10
_PAGE = 100
_QUERY = "status:completed lr>0.3 fold:7,8 metrics.m1<0.9"
_PLAIN = """
SELECT r.*, s.name, s.last FROM runs r JOIN series s ON s.run_id = r.run_id ORDER BY r.number DESC
"""


def listing(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    many = size.scaled(10_000, 2 * _PAGE)
    folder = sandbox.project(
        "listing", train="from runyard import Run\nfor n in range(5): Run.get_context().log(f'm{n}', 1)"
    )
    wait_for(sandbox.experiment("listing").submit(script_config(folder, "train.py", "--lr", 0.1)))
    connection = Connection()

    def views(limit: int) -> float:
        return timed(lambda: connection.get("/api/runs", limit=limit))()

    def rows(limit: int, **query: str) -> float:
        return timed(lambda: connection.get("/api/runs/table", limit=limit, **query))()

    multiply(sandbox, _FEW)
    few = measure_rounds({"views": lambda: views(_FEW), "rows": lambda: rows(_FEW)}, size.rounds)
    multiply(sandbox, many)
    listed = connection.get("/api/runs/table", limit=many)["rows"]
    assert len(listed) == many
    assert len(listed[0]["metrics"]) == 5
    plain = sqlite3.connect(sandbox.home / "yard.db")
    times = measure_rounds(
        {
            "sqlite": timed(lambda: plain.execute(_PLAIN).fetchall()),
            "all": lambda: rows(many),
            "bytes": timed(lambda: connection.read("/api/runs/table", limit=many)),
            "page": lambda: rows(_PAGE, query=_QUERY, sort="-metrics.m0"),
            "views": lambda: views(_PAGE),
            "all views": lambda: views(many),
            "command": timed(lambda: list_with_command(sandbox, many)),
            "few rows": lambda: rows(_FEW),
            "few views": lambda: views(_FEW),
        },
        size.rounds,
    )
    plain.close()
    baseline = ("rows of bare SQLite", times["sqlite"])
    yield Row(f"list {many:,} runs with five metrics each through the API", times["all"], baseline, Goal(0.100))
    yield Row("the same, not decoded", times["bytes"], baseline)
    yield Row(f"a page of {_PAGE} runs with a query and an order", times["page"], goal=Goal(0.010))
    yield Row(f"a page of {_PAGE} complete run descriptions", times["views"])
    yield Row(f"complete descriptions of {many:,} runs", times["all views"], baseline, Goal(1.0))
    yield Row(f"`runyard runs --all --json` of {many:,} runs", times["command"], goal=Goal(2.0))
    for kind in ("rows", "views"):
        yield Row(
            f"a page of {_FEW} {kind} among {many:,} runs",
            times[f"few {kind}"],
            (f"among {_FEW} runs", few[kind]),
            Goal(1.5, relative=True),
        )


def list_with_command(sandbox: Sandbox, count: int) -> None:
    command = [sys.executable, "-m", "runyard", "runs", "--all", "--json"]
    environment = {**os.environ, "RUNYARD_HOME": str(sandbox.home)}
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    assert output.count(b'"run_id"') >= count


def multiply(sandbox: Sandbox, count: int) -> None:
    """Copy the first run, with its labels and metrics, to ``count`` runs in the database of the stopped yard."""
    stop_yard(sandbox.home)
    database = sqlite3.connect(sandbox.home / "yard.db")
    try:
        have = database.execute("SELECT count(*) FROM runs").fetchone()[0]
        for table in ("runs", "tags", "properties", "params", "series", "changes"):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            columns = [name for name in columns if name not in ("number", "series_id", "change")]
            expressions = ", ".join(
                "t.run_id || '_' || n" if name in ("run_id", "root_id") else f't."{name}"' for name in columns
            )
            names = ", ".join(f'"{name}"' for name in columns)
            database.execute(
                f"WITH RECURSIVE numbers(n) AS (SELECT {have} UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
                f"INSERT INTO {table} ({names}) SELECT {expressions} FROM numbers, {table} t "
                "WHERE t.run_id = (SELECT run_id FROM runs ORDER BY number LIMIT 1)",
                (count - 1,),
            )
        database.execute("INSERT OR IGNORE INTO tags SELECT run_id, 'fold', CAST(number % 20 AS TEXT) FROM runs")
        database.execute("UPDATE series SET last = abs(random() % 100000) / 100000.0")
        database.execute("UPDATE params SET value = CAST(abs(random() % 1000) / 1000.0 AS TEXT)")
        database.commit()
    finally:
        database.close()
