"""What the studio costs: charts of long series, and a page that is open on a live run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

from bench.place import Place, as_it_is, to_the_end
from bench.row import Goal, Row, Sample, Size
from bench.turns import in_turns, seconds_of
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


def charts(place: Place, size: Size) -> Iterator[Row]:
    many = size.of(1_000_000)
    run = to_the_end(
        place.experiment("charts").submit(as_it_is(place.project("charts", train=_LONG), "train.py", many))
    )
    connection = Connection()

    def asked(**window: object) -> float:
        query = {"series": [{"run_id": run.id, "name": "long"}], "most": _WIDTH, **window}
        body, headers = json.dumps(query).encode(), {"Content-Type": "application/json"}
        return seconds_of(lambda: connection._send("POST", "/api/charts", body, headers).read())()

    times = in_turns(
        {
            "whole": asked,
            "window": lambda: asked(**{"from": many // 2, "to": many // 2 + many // 100}),
            "news": lambda: asked(after=[many - 10]),
        },
        size.rounds,
    )
    yield Row(f"chart of {many:,} points, {_WIDTH:,} wide, as the studio asks", times["whole"], goal=Goal(0.030))
    yield Row("a hundredth of it, zoomed into", times["window"])
    yield Row("only what came since the last look", times["news"], goal=Goal(0.010))


def open_page(place: Place, size: Size) -> Iterator[Row]:
    """Processor time of the yard in a second: a run that logs 20 points and lines a second, with and without a page."""
    stop = place.root / "stop"
    folder = place.project("open", train=_LIVE)
    run = place.experiment("open").submit(as_it_is(folder, "train.py", stop))
    connection = Connection()
    yard = connection.get("/api/health")["pid"]
    span_s = max(10.0 * min(size.scale * 10, 1.0), 0.5)
    alone, watched = Sample(), Sample()
    for _ in range(min(size.rounds, 5)):
        alone.append(_processor_s(yard, span_s) / span_s)
        with ExitStack() as pages:
            for path in ("/api/live", f"/api/runs/{run.id}/live"):
                _read_on(pages, path)
            watched.append(_processor_s(yard, span_s) / span_s)
    stop.touch()
    to_the_end(run)
    cost = Sample(max(page - bare, _TICK_S / span_s) for page, bare in zip(watched, alone))
    yield Row(
        "an open page on a live run: the yard's processor time in a second",
        cost,
        ("the yard with nobody looking", Sample(max(bare, _TICK_S / span_s) for bare in alone)),
        Goal(0.030),
    )


def _read_on(pages: ExitStack, path: str) -> None:
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


def _processor_s(pid: int, span_s: float) -> float:
    before = _ticks(pid)
    time.sleep(span_s)
    return (_ticks(pid) - before) * _TICK_S


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        words = stat.read().rpartition(b")")[2].split()
    return int(words[11]) + int(words[12])
