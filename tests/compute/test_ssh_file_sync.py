"""Synchronized files: the copy equals the original, however often the connection is lost."""

from __future__ import annotations

import random
import struct
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from runyard.compute.ssh import bundle, file_sync
from runyard.context import format as layout
from runyard.context.journal import Journal
from runyard.environments.node_package import create_node_package
from runyard.tracking.journal_reader import JournalReader, Position, stems
from support import Python, pythons


def synchronize(source: Path, copy: Path, *, lost_after: int | None = None, final: bool = False) -> int:
    """One connection, which may be lost after some frames. No state survives it."""
    frames = 0
    for head, body in file_sync.FileSender(source, file_sync.received(copy, {})).changes(final=final):
        if frames == lost_after:
            break
        file_sync.write(copy, head, body, {})
        frames += 1
    return frames


def points(folder: Path) -> list[tuple[float, int]]:
    values = []
    for stem in stems(folder):
        records = JournalReader(folder, stem).read(Position(), limit=10**9, final=True).records
        values += [(struct.unpack("<d", struct.pack("<q", r["value"]))[0], int(r["step"])) for r in records]
    return values


@pytest.mark.parametrize("seed", range(5))
def test_logs_and_points_arrive_once_however_often_the_connection_is_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "azureml-logs").mkdir(parents=True)
    copy.mkdir()
    journal = Journal(source / "journal")
    written = b""
    logged = []
    for step in range(3000):
        line = b"line %d\n" % step
        written += line
        with open(source / "azureml-logs" / "70_driver_log.txt", "ab") as log:
            log.write(line)
        journal.log(f"m{step % 7}", float(step), step=step)
        logged.append((float(step), step))
        if chance.random() < 0.02:
            synchronize(source, copy, lost_after=chance.choice([None, 0, 1, 2, 3]))
    journal.close()
    synchronize(source, copy, final=True)
    assert (copy / "azureml-logs" / "70_driver_log.txt").read_bytes() == written
    assert points(copy / "journal") == logged
    assert synchronize(source, copy) == 0


def test_records_behind_an_incomplete_one_are_sent_at_the_end(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    copy.mkdir()
    journal = Journal(source / "journal")
    for step in range(10):
        journal.log("loss", float(step), step=step)
    (segment,) = (source / "journal").glob("*.seg")
    data = bytearray(segment.read_bytes())
    hole = layout.HEADER_BYTES + 4 * layout.RECORD_BYTES
    data[hole + 30 : hole + 32] = b"\0\0"  # a thread has claimed its slot and not filled it yet
    segment.write_bytes(data)
    synchronize(source, copy)
    assert [step for _, step in points(copy / "journal")] == [0, 1, 2, 3]
    synchronize(source, copy, final=True)
    assert [step for _, step in points(copy / "journal")] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_second_attempt_is_appended_to_the_first(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    for folder, text in ((source, "second\n"), (copy, "first\n")):
        folder.mkdir()
        (folder / "events.jsonl").write_text(text)
    bases = file_sync.sizes(copy)
    for _ in range(2):
        for head, body in file_sync.FileSender(source, file_sync.received(copy, bases)).changes():
            file_sync.write(copy, head, body, bases)
    assert (copy / "events.jsonl").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "order.json", "a/../../b"])
def test_a_host_can_only_write_to_files_of_its_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="must not write"):
        file_sync.write(tmp_path, {"file": name, "at": 0}, b"x", {})


@pytest.mark.parametrize("python", pythons(), ids=lambda python: python.version)
@pytest.mark.real
def test_the_runtime_bundle_needs_only_the_python_of_the_host(tmp_path: Path, python: Python) -> None:
    _, archive = bundle.runtime_bundle(create_node_package(tmp_path / "kit"))
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        for member in tar.getmembers():
            path = tmp_path / "runtime" / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            extracted = tar.extractfile(member)
            assert extracted is not None
            path.write_bytes(extracted.read())
    modules = (
        "runyard.compute.ssh.remote_agent, runyard.environments.remote_builder, "
        "runyard.agent.main, runyard.agent.supervise.node_group"
    )
    command = [python.path, "-S", "-c", f"import {modules}"]
    result = subprocess.run(command, env={"PYTHONPATH": str(tmp_path / "runtime")}, capture_output=True, text=True)
    assert result.stderr == ""
