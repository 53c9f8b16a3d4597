"""Files that are followed from one machine to another: the copy is the original, however often the line is cut."""

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
from runyard.environments.node_package import kit
from runyard.tracking.journal_reader import JournalReader, Position, stems
from support import Python, pythons


def bring(there: Path, here: Path, *, cut_after: int | None = None, final: bool = False) -> int:
    """One connection: what is new goes over, until it is cut. As after every reconnect, nothing is remembered."""
    frames = 0
    for head, body in file_sync.Trail(there, file_sync.have(here, {})).news(final=final):
        if frames == cut_after:
            break
        file_sync.write(here, head, body, {})
        frames += 1
    return frames


def points(folder: Path) -> list[tuple[float, int]]:
    found = []
    for stem in stems(folder):
        records = JournalReader(folder, stem).read(Position(), limit=10**9, final=True).records
        found += [(struct.unpack("<d", struct.pack("<q", r["value"]))[0], int(r["step"])) for r in records]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_logs_and_points_arrive_once_however_the_line_is_cut(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "azureml-logs").mkdir(parents=True)
    here.mkdir()
    journal = Journal(there / "journal")
    said = b""
    logged = []
    for step in range(3000):
        line = b"line %d\n" % step
        said += line
        with open(there / "azureml-logs" / "70_driver_log.txt", "ab") as log:
            log.write(line)
        journal.log(f"m{step % 7}", float(step), step=step)
        logged.append((float(step), step))
        if chance.random() < 0.02:
            bring(there, here, cut_after=chance.choice([None, 0, 1, 2, 3]))
    journal.close()
    bring(there, here, final=True)
    assert (here / "azureml-logs" / "70_driver_log.txt").read_bytes() == said
    assert points(here / "journal") == logged
    assert bring(there, here) == 0


def test_a_record_that_is_not_complete_is_waited_for_and_what_follows_it_comes_at_the_end(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    here.mkdir()
    journal = Journal(there / "journal")
    for step in range(10):
        journal.log("loss", float(step), step=step)
    (segment,) = (there / "journal").glob("*.seg")
    data = bytearray(segment.read_bytes())
    hole = layout.HEADER_BYTES + 4 * layout.RECORD_BYTES
    data[hole + 30 : hole + 32] = b"\0\0"  # as when a thread is between claiming its slot and filling it
    segment.write_bytes(data)
    bring(there, here)
    assert [step for _, step in points(here / "journal")] == [0, 1, 2, 3]
    bring(there, here, final=True)
    assert [step for _, step in points(here / "journal")] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_second_attempt_is_written_behind_the_first(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    for folder, text in ((there, "second\n"), (here, "first\n")):
        folder.mkdir()
        (folder / "events.jsonl").write_text(text)
    bases = file_sync.sizes(here)
    for _ in range(2):
        for head, body in file_sync.Trail(there, file_sync.have(here, bases)).news():
            file_sync.write(here, head, body, bases)
    assert (here / "events.jsonl").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "order.json", "a/../../b"])
def test_a_host_writes_nowhere_but_in_its_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="must not write"):
        file_sync.write(tmp_path, {"file": name, "at": 0}, b"x", {})


@pytest.mark.parametrize("python", pythons(), ids=lambda python: python.version)
@pytest.mark.real
def test_what_travels_to_a_host_runs_there_with_its_python_alone(tmp_path: Path, python: Python) -> None:
    _, archive = bundle.office(kit(tmp_path / "kit"))
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        for member in tar.getmembers():
            path = tmp_path / "office" / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            extracted = tar.extractfile(member)
            assert extracted is not None
            path.write_bytes(extracted.read())
    modules = (
        "runyard.compute.ssh.remote_agent, runyard.environments.remote_builder, "
        "runyard.agent.main, runyard.agent.supervise.node_group"
    )
    command = [python.path, "-S", "-c", f"import {modules}"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path / "office")}, capture_output=True, text=True)
    assert done.stderr == ""
