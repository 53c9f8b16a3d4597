"""Costs of the studio: charts of long series, and an open page on a live run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Sample, Size
from bench.sandbox import Sandbox, script_config, wait_for
from runyard.client.connection import Connection

_LONG = """
import math, sys
from runyard import Run
run = Run.get_context()
for step in range(int(sys.argv[1])):
    run.log("long", math.sin(step / 1000), step=step)
"""
_LIVE = """
import os, sys, time
from runyard import Run
run = Run.get_context()
while not os.path.exists(sys.argv[1]):
    run.log("loss", time.time())
    print("a line", flush=True)
    time.sleep(0.05)
"""
_WIDTH = 1_000
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def charts(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    many = size.scaled(1_000_000)
    run = wait_for(
        sandbox.experiment("charts").submit(script_config(sandbox.project("charts", train=_LONG), "train.py", many))
    )
    connection = Connection()

    def request_chart(**window: object) -> float:
        query = {"series": [{"run_id": run.id, "name": "long"}], "most": _WIDTH, **window}
        body, headers = json.dumps(query).encode(), {"Content-Type": "application/json"}
        return timed(lambda: connection._send("POST", "/api/charts", body, headers).read())()

    times = measure_rounds(
        {
            "full": request_chart,
            "window": lambda: request_chart(**{"from": many // 2, "to": many // 2 + many // 100}),
            "new": lambda: request_chart(after=[many - 10]),
        },
        size.rounds,
    )
    title = f"chart of {many:,} points, reduced to {_WIDTH:,}, as the studio requests it"
    yield Row(title, times["full"], goal=Goal(0.030))
    yield Row("a zoom into one percent of it", times["window"])
    yield Row("only the points since the last request", times["new"], goal=Goal(0.010))


def open_page(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Measure the CPU time of the yard for a run that logs 20 points and lines per second, with and without a page."""
    stop = sandbox.root / "stop"
    folder = sandbox.project("open", train=_LIVE)
    run = sandbox.experiment("open").submit(script_config(folder, "train.py", stop))
    connection = Connection()
    yard = connection.get("/api/health")["pid"]
    span_s = max(10.0 * min(size.scale * 10, 1.0), 0.5)
    without_page, with_page = Sample(), Sample()
    for _ in range(min(size.rounds, 5)):
        without_page.append(_cpu_time(yard, span_s) / span_s)
        with ExitStack() as pages:
            for path in ("/api/live", f"/api/runs/{run.id}/live"):
                _follow_events(pages, path)
            with_page.append(_cpu_time(yard, span_s) / span_s)
    stop.touch()
    wait_for(run)
    cost = Sample(max(page - bare, _TICK_S / span_s) for page, bare in zip(with_page, without_page))
    yield Row(
        "CPU time of the yard per second for an open page on a live run",
        cost,
        ("the yard without an open page", Sample(max(bare, _TICK_S / span_s) for bare in without_page)),
        Goal(0.030),
    )


def _follow_events(pages: ExitStack, path: str) -> None:
    events = Connection().events(path)
    next(events)
    closing: list[bool] = []

    def read() -> None:
        for _ in events:
            if closing:
                break
        events.close()

    reader = Thread(target=read, daemon=True)
    reader.start()
    pages.callback(reader.join)
    pages.callback(closing.append, True)


def _cpu_time(pid: int, span_s: float) -> float:
    before = _ticks(pid)
    time.sleep(span_s)
    return (_ticks(pid) - before) * _TICK_S


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        words = stat.read().rpartition(b")")[2].split()
    return int(words[11]) + int(words[12])
