"""A script can write anything into its journal: reading it never fails, and never takes more than it should."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.context import format as layout
from runyard.context.journal import Journal
from runyard.store.database import Database
from runyard.tracking.ingest import dropped_points, ingest
from runyard.tracking.journal_reader import JournalReader, Position, stems
from runyard.tracking.metrics import read_metrics
from runyard.tracking.series import all_series
from runyard.tracking.value_entries import read_entries

KINDS = st.sampled_from([*range(1, 18), 0, 18, 255, 256, 65535])
INTEGERS = st.sampled_from([0, 1, 40, -1, 10**6, 2**31, 2**32 - 1, 2**62, -(2**63), 2**63 - 1])
TIMES = st.sampled_from([0.0, 1.7e9, float("nan"), float("inf"), -1e300])
METRICS = st.sampled_from([0, 1, 2, 1000, 2**20, 2**32 - 1])
RECORDS = st.lists(st.tuples(INTEGERS, TIMES, INTEGERS, METRICS, KINDS), max_size=20)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
LINES = st.lists(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20), max_size=8)
HEADERS = st.none() | st.binary(min_size=layout.HEADER_BYTES, max_size=layout.HEADER_BYTES)

numbers = itertools.count()


def check(database: Database, folder: Path) -> None:
    """Read a journal while its run is active and at its end, and everything that was stored of it."""
    run_id = f"r{next(numbers)}"
    ingest(database, run_id, folder)
    ingest(database, run_id, folder, final=True)
    assert dropped_points(database, run_id) >= 0
    read_metrics(database, [run_id])
    with database.read() as connection:
        names = [series.name for series in all_series(connection, run_id)]
    for name in names:
        json.dumps(read_entries(database, run_id, name), allow_nan=False).encode()


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=HEADERS, records=RECORDS, names=LINES, side=LINES, lost=st.sampled_from([0, 7, 2**40]))
def test_no_content_of_a_journal_is_an_error(
    database: Database,
    tmp_path: Path,
    header: bytes | None,
    records: Any,
    names: list[bytes],
    side: list[bytes],
    lost: int,
) -> None:
    folder = tmp_path / str(next(numbers))
    folder.mkdir()
    valid = layout.Header(0, 0, 1, 1, 0, 0.0, "elsewhere").pack()
    head = valid if header is None else layout.MAGIC + header[8:]
    packed = [layout.INT_RECORD.pack(*record, layout.COMMITTED) for record in records]
    (folder / "00000-1-aa.000000.seg").write_bytes(head + b"".join(packed))
    (folder / "00000-1-aa.names").write_bytes(b"\n".join(names) + b"\n")
    (folder / "00000-1-aa.side").write_bytes(b"\n".join(side) + b"\n")
    with open(folder / "00000-1-aa.lost", "wb") as file:
        file.truncate(lost)
    check(database, folder)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_valid_journal_with_changed_bytes_is_read(database: Database, tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / str(next(numbers))
    journal = Journal(folder)
    for step in range(3):
        journal.log("loss", 0.5, step)
        journal.log("text", "word")
        journal.log("large", 10**30)
    journal.log_list("list", [1, 2.5, "x", None])
    journal.log_row("row", a=1, b="x")
    journal.log_table("table", {"a": [1, 2]})
    journal.close()
    for path in sorted(folder.iterdir()):
        content = bytearray(path.read_bytes()[:1200])
        for _ in range(data.draw(st.integers(0, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    check(database, folder)


@pytest.mark.parametrize("suffix", [".000000.seg", ".names", ".side", ".lost"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_replaced_file_is_not_read(
    database: Database, folder: Path, journal: Journal, suffix: str, kind: str
) -> None:
    journal.log("loss", 1.0)
    journal.log("text", "word")
    (stem,) = stems(folder)
    path = folder / f"{stem}{suffix}"
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/etc/passwd")
    check(database, folder)


def test_a_journal_folder_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    Journal(tmp_path / "other").log("loss", 1.0)
    (tmp_path / "journal").symlink_to(tmp_path / "other")
    assert stems(tmp_path / "journal") == []


def test_names_that_are_not_those_of_journals_are_ignored(folder: Path) -> None:
    folder.mkdir()
    for name in (b"\xff\xfe.000000.seg", b".seg", b"a b.000000.seg", "ä.lost".encode()):
        (folder / os.fsdecode(name)).touch()
    assert stems(folder) == []


def test_a_reader_survives_a_segment_that_is_truncated_while_it_is_read(tmp_path: Path) -> None:
    """A process that reads truncated pages of a mapped file is killed by SIGBUS."""
    journal = Journal(tmp_path)
    for step in range(40_000):
        journal.log("loss", 0.5, step)
    paths = sorted(tmp_path.glob("*.seg"))
    contents = [path.read_bytes() for path in paths]
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from runyard.tracking.journal_reader import JournalReader, Position, stems\n"
        "folder = Path(sys.argv[1])\nprint('ready', flush=True)\n"
        "for _ in range(300):\n"
        "    for stem in stems(folder):\n"
        "        JournalReader(folder, stem).read(Position(), limit=10**6)\n"
        "print('done')"
    )
    reader = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    while reader.poll() is None:
        for path, content in zip(paths, contents):
            os.truncate(path, 0)
            path.write_bytes(content)
    assert reader.stdout.read() == "done\n"
    reader.stdout.close()
    assert reader.returncode == 0


def test_a_truncated_journal_keeps_its_position(folder: Path, journal: Journal, metrics: Callable[[], Any]) -> None:
    for step in range(10):
        journal.log("loss", float(step))
    assert metrics()["loss"] == [float(step) for step in range(10)]
    (segment,) = folder.glob("*.seg")
    content = segment.read_bytes()
    os.truncate(segment, 300)
    assert len(metrics()["loss"]) == 10
    segment.write_bytes(content)
    assert len(metrics()["loss"]) == 10


def test_values_that_do_not_fit_in_memory_together_are_read_in_parts(
    database: Database, folder: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.tracking.journal_reader._SIDE_BYTES", 1000)
    for step in range(50):
        journal.log("text", f"{step:03d}" * 60)
        journal.log("loss", float(step))
    (stem,) = stems(folder)
    batch = JournalReader(folder, stem).read(Position(), limit=10**6)
    assert batch.is_cut
    assert 2 <= len(batch.records) < 20
    ingest(database, "r", folder)
    stored = read_metrics(database, ["r"])["r"]
    assert stored["text"] == [f"{step:03d}" * 60 for step in range(50)]
    assert stored["loss"] == [float(step) for step in range(50)]


def test_an_empty_slot_is_skipped_whatever_the_clock_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of records are of another moment than the reader's clock, if the clock was set in between."""
    journal = Journal(folder)
    journal.log("loss", 1.0)
    claim, buffer = journal._segment
    claim()
    journal.log_at("loss", 2.0, 4e9)  # in the future, as if the clock had been set back since
    buffer[layout.INTERRUPTED_AT] = 1
    (stem,) = stems(folder)
    first = JournalReader(folder, stem).read(Position(), limit=100)
    assert len(first.records) == 1
    monkeypatch.setattr("runyard.tracking.journal_reader._EMPTY_SLOT_TIMEOUT_S", 0.0)
    pause = threading.Event()
    pause.wait(0.01)
    assert len(JournalReader(folder, stem).read(first.position, limit=100).records) == 1
