"""`run.log` inside a script of the yard: what a call costs, and how soon another client can read what was logged."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.peers import present
from bench.place import Place, as_it_is, to_the_end
from bench.row import Goal, Row, Sample, Size
from bench.turns import Contender, in_turns
from runyard.wire.points import decode_points

_COST = """\
import json, os, struct, sys, time
from time import perf_counter
from runyard import Run

calls, answer = int(sys.argv[1]), sys.argv[2]
run = Run.get_context()
run.log("loss", 0.0)
buffer, pack = bytearray(32), struct.Struct("<ddqIHH").pack_into
file = os.open(answer + ".written", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)

def by_struct():
    for _ in range(calls):
        pack(buffer, 0, 0.5, time.time(), 0, 1, 1, 1)

def by_log():
    log = run.log
    for _ in range(calls):
        log("loss", 0.5)

def by_write():
    for _ in range(calls):
        os.write(file, buffer)

took = {}
for work in (by_struct, by_log, by_write):
    began = perf_counter()
    work()
    took[work.__name__] = (perf_counter() - began) / calls
with open(answer, "w") as file:
    json.dump(took, file)
"""

_MANY = """\
import os, sys, time
from runyard import Run

points, mark = int(sys.argv[1]), sys.argv[2]
run = Run.get_context()
began = time.monotonic()
for index in range(points):
    run.log("loss", index * 0.5)
with open(mark + ".draft", "w") as file:
    file.write(repr(began))
os.rename(mark + ".draft", mark)
time.sleep(0.3)  # it is still running when its points are read
"""

_PEERS = [
    ("trackio", "log_trackio.py"),
    ("tensorboardX", "log_tensorboardx.py"),
    ("aim", "log_aim.py"),
    ("wandb", "log_wandb.py"),
    ("mlflow-skinny", "log_mlflow.py"),
]


def cost_of_a_call(place: Place, size: Size) -> Iterator[Row]:
    folder = place.project("cost", train=_COST)
    answer = place.root / "cost.json"
    experiment = place.experiment("cost")
    config = as_it_is(folder, "train.py", size.of(100_000), answer)
    beside = {"by_struct": Sample(), "by_write": Sample()}

    def ours() -> float:
        to_the_end(experiment.submit(config))
        took: dict[str, float] = json.loads(answer.read_text())
        for name, sample in beside.items():
            sample.append(took[name])
        return took["by_log"]

    with present(_PEERS if size.peers else [], place.folder("peers")) as (peers, notes):
        times = in_turns({"ours": ours, **{name: peer.ask for name, peer in peers.items()}}, size.rounds)
    yield Row(
        "`run.log`, a call",
        times["ours"],
        ("packing into a buffer", beside["by_struct"]),
        Goal(1.5e-6),
        peers={"one `os.write`": beside["by_write"], **{name: times[name] for name in peers}},
        notes=tuple(notes),
    )


def points_until_readable(place: Place, size: Size) -> Iterator[Row]:
    points = size.of(500_000)
    ours = points_a_second(place, points)
    rounds = min(size.rounds, 9)
    times = in_turns({"sqlite": lambda: _rows_a_second(place.root, points), "ours": ours}, rounds)
    yield Row(
        f"points until another client has read them, {points:,} by `run.log`",
        times["ours"],
        ("rows into bare SQLite", times["sqlite"]),
        Goal(500_000, at_least=True),
        unit="/s",
    )


def points_a_second(place: Place, points: int) -> Contender:
    """The clock runs from the script's first point until another client has the last one in its hands."""
    folder = place.project("points", train=_MANY)
    mark = place.root / "points.mark"
    experiment = place.experiment("points")
    config = as_it_is(folder, "train.py", points, mark)

    def ours() -> float:
        mark.unlink(missing_ok=True)
        run = experiment.submit(config)
        while not mark.exists():
            time.sleep(0.001)
        seen = 0
        while seen < points:
            read = experiment.workspace.connection.read(f"/api/runs/{run.id}/metrics/loss", after=points - 1)
            seen = decode_points(read).next
        rate = points / (time.monotonic() - float(mark.read_text()))
        run.wait_for_completion()
        return rate

    return ours


def _rows_a_second(folder: Path, points: int) -> float:
    path = folder / "rows.db"
    path.unlink(missing_ok=True)
    rows = sqlite3.connect(path)
    try:
        rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("CREATE TABLE points (name TEXT, step INTEGER, time REAL, value REAL)")
        began = perf_counter()
        rows.executemany("INSERT INTO points VALUES ('loss', ?, 0.0, 0.5)", ((index,) for index in range(points)))
        rows.commit()
        return points / (perf_counter() - began)
    finally:
        rows.close()
