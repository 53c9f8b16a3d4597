"""Rows of the bench about metrics: each beside what the machine could do at best, measured in the same run."""

from __future__ import annotations

import gc
import math
import os
import sqlite3
import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from runyard.context.journal import Journal
from runyard.store.database import Database
from runyard.store.schema import metadata
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import encode_points, read_chart, read_points
from runyard.wire.points import decode_points

RUN = "bench_1"


def time_log_call(scratch: Path, *, calls: int = 200_000, rounds: int = 5) -> dict[str, float]:
    """Seconds per call: packing into a buffer, ``Journal.log`` of a float, one ``os.write``; best of some rounds."""
    buffer, pack = bytearray(32), struct.Struct("<ddqIHH").pack_into
    journal = Journal(scratch / "journal-calls")
    journal.log("loss", 0.0)
    file = os.open(scratch / "written", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def into_buffer() -> None:
        for _ in range(calls):
            pack(buffer, 0, 0.5, time.time(), 0, 1, 1, 1)

    def by_log() -> None:
        for _ in range(calls):
            journal.log("loss", 0.5)

    def by_write() -> None:
        for _ in range(calls):
            os.write(file, buffer)

    try:
        times = _in_turns({"struct_s": into_buffer, "log_s": by_log, "write_s": by_write}, rounds)
    finally:
        os.close(file)
    return {name: min(seconds) / calls for name, seconds in times.items()}


def points_per_second(scratch: Path, *, points: int = 500_000) -> dict[str, float]:
    """Points a second from the first ``log`` until another reader has the last; and rows a second into bare SQLite."""
    database = _database(scratch / "points.db")
    journal = Journal(scratch / "journal-points")
    begin = perf_counter()
    for index in range(points):
        journal.log("loss", index * 0.5)
    logged = perf_counter()
    ingest(database, RUN, scratch / "journal-points")
    seen = read_points(database, RUN, "loss", after=points - 1)
    end = perf_counter()
    if seen.next != points:
        raise AssertionError(f"{seen.next} of {points} points arrived")
    database.close()

    rows = sqlite3.connect(scratch / "rows.db")
    rows.execute("PRAGMA journal_mode=WAL")
    rows.execute("CREATE TABLE points (name TEXT, step INTEGER, time REAL, value REAL)")
    rows_begin = perf_counter()
    rows.executemany("INSERT INTO points VALUES ('loss', ?, 0.0, 0.5)", ((index,) for index in range(points)))
    rows.commit()
    rows_end = perf_counter()
    rows.close()
    return {
        "points_per_s": points / (end - begin),
        "ingest_points_per_s": points / (end - logged),
        "sqlite_rows_per_s": points / (rows_end - rows_begin),
    }


def time_reads(scratch: Path, *, rounds: int = 15) -> dict[str, float]:
    """Median seconds: 100,000 points read, packed and unpacked as a client would; a chart of 1,000,000; the limits."""
    database = _database(scratch / "reads.db")
    journal = Journal(scratch / "journal-reads")
    for index in range(1_000_000):
        journal.log("long", math.sin(index / 1000))
    for index in range(100_000):
        journal.log("loss", index * 0.5, step=index)
    ingest(database, RUN, scratch / "journal-reads")
    np.zeros(300_000).tofile(scratch / "array")
    times = _in_turns(
        {
            "array_file_s": lambda: np.fromfile(scratch / "array"),
            "read_100k_s": lambda: decode_points(encode_points(read_points(database, RUN, "loss"))),
            "chart_1m_s": lambda: decode_points(encode_points(read_chart(database, RUN, "long", 1000))),
        },
        rounds,
    )
    database.close()
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _database(path: Path) -> Database:
    database = Database(path)
    with database.write() as connection:
        metadata.create_all(connection)
    return database


def _in_turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Taken in turns, so that a noisy minute of the machine falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            begin = perf_counter()
            work()
            times[name].append(perf_counter() - begin)
    return times
