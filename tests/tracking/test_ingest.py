from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from runyard.context.journal import Journal
from runyard.errors import UserErrorException
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import BLOCK_POINTS
from runyard.tracking.ingest import _locks, dropped_points, ingest
from runyard.tracking.metrics import read_metrics, read_points

SOURCE = Path(__file__).parents[2] / "src"
Metrics = Callable[[], dict[str, Any]]


def counts(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(select(schema.blocks.c.count).order_by(schema.blocks.c.number)).scalars())


def test_repeated_ingestion_stores_each_point_once(journal: Journal, metrics: Metrics) -> None:
    logged = []
    for turn in range(30):
        for index in range(turn * 7):
            journal.log("loss", float(index))
            logged.append(float(index))
        if logged:
            assert metrics()["loss"] == logged
    assert metrics()["loss"] == logged


def test_a_run_without_journals(database: Database, folder: Path) -> None:
    assert ingest(database, "r", folder) == 0
    folder.mkdir()
    assert ingest(database, "r", folder) == 0
    assert read_metrics(database, ["r"]) == {"r": {}}


@pytest.mark.parametrize("final", [False, True])
def test_a_void_record_alone_is_not_stored(database: Database, folder: Path, journal: Journal, final: bool) -> None:
    journal.log("loss", 0.9)
    ingest(database, "r", folder)
    with pytest.raises(UserErrorException):
        journal.log("loss", 0.8, step=1.5)  # type: ignore[arg-type]
    ingest(database, "r", folder, final=final)
    assert read_metrics(database, ["r"]) == {"r": {"loss": 0.9}}
    journal.log("loss", 0.7)
    ingest(database, "r", folder, final=final)
    assert read_metrics(database, ["r"]) == {"r": {"loss": [0.9, 0.7]}}


def test_blocks_are_filled_and_few_are_small(database: Database, folder: Path, journal: Journal) -> None:
    total = 0
    for turn in range(300):
        for _ in range(1 + turn * 13 % 120):
            journal.log("loss", float(total))
            total += 1
        ingest(database, "r", folder)
    sizes = counts(database)
    assert sum(sizes) == total
    assert len([size for size in sizes if size < BLOCK_POINTS]) <= 13
    assert max(sizes) == BLOCK_POINTS
    assert read_points(database, "r", "loss").values.tolist() == [float(index) for index in range(total)]


def test_points_of_several_processes_are_merged_by_time(database: Database, folder: Path, metrics: Metrics) -> None:
    ranks = [Journal(folder, rank=rank) for rank in range(3)]
    for index in range(500):
        for rank, journal in enumerate(ranks):
            journal.log("loss", index * 3 + rank)
            journal.log(f"rank {rank}", "text")
    assert metrics()["loss"] == list(range(1500))
    assert read_points(database, "r", "loss").times.tolist() == sorted(read_points(database, "r", "loss").times)
    assert metrics()["rank 2"] == ["text"] * 500


def test_ingest_returns_while_a_script_keeps_logging(database: Database, folder: Path, journal: Journal) -> None:
    stop, has_logged = threading.Event(), threading.Event()

    def log_continuously() -> None:
        for number in range(2_000_000):
            journal.log("loss", float(number))
            has_logged.set()
            if stop.is_set():
                return

    script = threading.Thread(target=log_continuously)
    script.start()
    has_logged.wait(30)
    ingest(database, "r1", folder)
    is_still_logging = script.is_alive()
    stop.set()
    script.join()
    assert is_still_logging


def test_nothing_stays_in_memory_for_runs_that_were_ingested(database: Database, folder: Path) -> None:
    for number in range(50):
        ingest(database, f"run_{number}", folder)
    assert len(_locks) == 0


def test_threads_can_ingest_one_run_concurrently(database: Database, folder: Path, journal: Journal) -> None:
    for index in range(5000):
        journal.log("loss", index)
    begin = threading.Barrier(6)
    stored: list[int] = []

    def work() -> None:
        begin.wait()
        stored.append(ingest(database, "r", folder))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(stored) == 5000
    assert read_metrics(database, ["r"])["r"]["loss"] == list(range(5000))


INGESTER = """
import sys
from pathlib import Path
from runyard.store.database import Database
from runyard.tracking.ingest import ingest
database = Database(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    ingest(database, "r", Path(sys.argv[2]))
"""


def ingester(database: Database, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(
        [sys.executable, "-c", INGESTER, str(database.path), str(folder)], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return process


@pytest.mark.real
def test_killing_the_ingesting_process_neither_loses_nor_duplicates_points(
    database: Database, folder: Path, journal: Journal
) -> None:
    chance = random.Random(3)
    total = 0
    for _ in range(6):
        processes = [ingester(database, folder) for _ in range(2)]  # concurrently, without duplicates
        for _ in range(chance.randrange(20_000, 60_000)):
            journal.log("loss", total)
            if total % 100 == 0:
                journal.log_row("row", index=total)
            total += 1
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
    ingest(database, "r", folder)
    metrics = read_metrics(database, ["r"])["r"]
    assert metrics["loss"] == list(range(total))
    assert metrics["row"]["index"] == list(range(0, total, 100))


def test_the_series_table_has_the_last_value(database: Database, folder: Path, journal: Journal) -> None:
    journal.log("loss", 1.5)
    journal.log("loss", 0.5)
    journal.log("note", "fine")
    journal.log_row("row", x=1, y=2)
    journal.log_image("plot", "plot.png")
    ingest(database, "r", folder)
    table = schema.series.c
    with database.read() as connection:
        rows = connection.execute(select(table.name, table.kind, table.count, table.last)).all()
    assert sorted(tuple(row) for row in rows) == [
        ("loss", "scalar", 2, 0.5),
        ("note", "scalar", 1, "fine"),
        ("plot", "image", 1, "plot.png"),
        ("row", "row", 1, {"x": 1, "y": 2}),
    ]


def test_damaged_side_files_lose_only_their_values(folder: Path, journal: Journal, metrics: Metrics) -> None:
    journal.log("loss", 1.0)
    journal.log_row("row", x=1)
    journal.log("text", "kept")
    (side,) = folder.glob("*.side")
    side.write_bytes(b"\0" * side.stat().st_size)
    (names,) = folder.glob("*.names")
    names.write_bytes(names.read_bytes().splitlines(keepends=True)[0])
    assert metrics()["loss"] == 1.0


def test_dropped_points_are_counted(database: Database, folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    journal = Journal(folder)
    journal.log("loss", 1.0)
    assert journal.dropped == 1
    folder.unlink()
    pause = threading.Event()
    for _ in range(100):
        dropped = journal.dropped
        journal.log("loss", 2.0)
        if journal.dropped == dropped:
            break
        pause.wait(0.1)
    ingest(database, "r", folder, final=True)
    assert dropped_points(database, "r") >= 1
    assert read_metrics(database, ["r"])["r"]["loss"] == 2.0
