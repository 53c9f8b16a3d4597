"""`run.log` in a run: the cost of a call, and the time until another client can read the points."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from bench.peers import start_peers
from bench.rounds import Contender, measure_rounds
from bench.row import Goal, Row, Sample, Size
from bench.sandbox import Sandbox, script_config, wait_for
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
time.sleep(0.3)  # the run must be live when its points are read
"""

_PEERS = [
    ("trackio", "log_trackio.py"),
    ("tensorboardX", "log_tensorboardx.py"),
    ("aim", "log_aim.py"),
    ("wandb", "log_wandb.py"),
    ("mlflow-skinny", "log_mlflow.py"),
]


def call_cost(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    folder = sandbox.project("cost", train=_COST)
    result_file = sandbox.root / "cost.json"
    experiment = sandbox.experiment("cost")
    config = script_config(folder, "train.py", size.scaled(100_000), result_file)
    baseline = {"by_struct": Sample(), "by_write": Sample()}

    def ours() -> float:
        wait_for(experiment.submit(config))
        took: dict[str, float] = json.loads(result_file.read_text())
        for name, sample in baseline.items():
            sample.append(took[name])
        return took["by_log"]

    with start_peers(_PEERS if size.peers else [], sandbox.folder("peers")) as (peers, notes):
        times = measure_rounds({"ours": ours, **{name: peer.measure for name, peer in peers.items()}}, size.rounds)
    yield Row(
        "one call of `run.log`",
        times["ours"],
        ("packing into a buffer", baseline["by_struct"]),
        Goal(1.5e-6),
        peers={"one `os.write`": baseline["by_write"], **{name: times[name] for name in peers}},
        notes=tuple(notes),
    )


def points_until_readable(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    points = size.scaled(500_000)
    ours = points_per_second(sandbox, points)
    rounds = min(size.rounds, 9)
    times = measure_rounds({"sqlite": lambda: _sqlite_rows_per_second(sandbox.root, points), "ours": ours}, rounds)
    yield Row(
        f"{points:,} points with `run.log` until another client has read them",
        times["ours"],
        ("rows into bare SQLite", times["sqlite"]),
        Goal(500_000, at_least=True),
        unit="/s",
    )


def points_per_second(sandbox: Sandbox, points: int) -> Contender:
    """Measure from the script's first point until another client has read the last one."""
    folder = sandbox.project("points", train=_MANY)
    mark = sandbox.root / "points.mark"
    experiment = sandbox.experiment("points")
    config = script_config(folder, "train.py", points, mark)

    def ours() -> float:
        mark.unlink(missing_ok=True)
        run = experiment.submit(config)
        while not mark.exists():
            time.sleep(0.001)
        read_count = 0
        while read_count < points:
            read = experiment.workspace.connection.read(f"/api/runs/{run.id}/metrics/loss", after=points - 1)
            read_count = decode_points(read).next
        rate = points / (time.monotonic() - float(mark.read_text()))
        run.wait_for_completion()
        return rate

    return ours


def _sqlite_rows_per_second(folder: Path, points: int) -> float:
    path = folder / "rows.db"
    path.unlink(missing_ok=True)
    rows = sqlite3.connect(path)
    try:
        rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("CREATE TABLE points (name TEXT, step INTEGER, time REAL, value REAL)")
        started_at = perf_counter()
        rows.executemany("INSERT INTO points VALUES ('loss', ?, 0.0, 0.5)", ((index,) for index in range(points)))
        rows.commit()
        return points / (perf_counter() - started_at)
    finally:
        rows.close()
