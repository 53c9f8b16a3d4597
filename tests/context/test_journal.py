from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runyard.context import format as layout
from runyard.context.journal import Journal
from runyard.tracking.journal_reader import JournalReader, Position, Records, stems
from support import pythons

SOURCE = Path(__file__).parents[2] / "src"


def read_records(folder: Path) -> dict[str, Records]:
    return {stem: JournalReader(folder, stem).read(Position(), limit=10**9).records for stem in stems(folder)}


def start_script(folder: Path, body: str, python: str = sys.executable, **options: Any) -> subprocess.Popen[bytes]:
    code = "import os, sys\nfrom runyard.context.journal import Journal\n" + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FOLDER": str(folder)}
    return subprocess.Popen(
        [python, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.mark.parametrize("attempt", range(4))
def test_every_call_that_returned_before_kill_9_is_stored_exactly_once(tmp_path: Path, attempt: int) -> None:
    folder = tmp_path / "journal"
    process = start_script(
        folder,
        """
        journal = Journal(os.environ["FOLDER"])
        index = 0
        while True:
            journal.log("index", float(index), step=index)
            if index % 50 == 49:
                journal.log("text", str(index))
            os.write(1, index.to_bytes(8, "little"))
            index += 1
        """,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    count = random.Random(attempt).randrange(300, 5000)
    output = process.stdout.read(8 * count)  # the rest stays in the pipe: the script continues until it is full
    process.send_signal(signal.SIGKILL)
    process.wait()
    output += process.stdout.read()
    process.stdout.close()
    process.stderr.close()
    end = len(output) // 8 * 8
    returned = int.from_bytes(output[end - 8 : end], "little")

    (records,) = read_records(folder).values()
    floats = records[records["kind"] == layout.FLOAT]
    values = floats["value"].copy().view(np.float64)
    assert values.tolist() == [float(index) for index in range(len(values))]
    assert floats["step"].tolist() == list(range(len(values)))
    assert returned + 1 <= len(values) <= returned + 2
    (stem,) = stems(folder)
    texts = records[records["kind"] == layout.TEXT]["value"].tolist()
    if texts:
        assert JournalReader(folder, stem).side_lines(texts)[0] == "49"


def test_a_forked_child_writes_a_separate_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.log("writer", 1.0)
    journal.log("text", "parent")
    child = os.fork()
    if child == 0:
        for _ in range(1000):
            journal.log("writer", 2.0)
        journal.log("text", "child")
        os._exit(0)
    for _ in range(1000):
        journal.log("writer", 1.0)
    assert os.waitpid(child, 0)[1] == 0

    by_writer = {}
    for stem, records in read_records(tmp_path).items():
        floats = records[records["kind"] == layout.FLOAT]["value"].copy().view(np.float64)
        by_writer[int(stem.split("-")[1])] = Counter(floats.tolist())
        texts = records[records["kind"] == layout.TEXT]["value"].tolist()
        assert JournalReader(tmp_path, stem).side_lines(texts) == ["child" if f"-{child}-" in stem else "parent"]
    assert by_writer == {os.getpid(): Counter({1.0: 1001}), child: Counter({2.0: 1000})}


def test_threads_share_a_journal_without_losing_or_duplicating_points(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    begin = threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        for index in range(3000):
            journal.log(f"metric {index % 7}", number * 10_000 + index)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (records,) = read_records(tmp_path).values()
    values = records[records["kind"] == layout.INT]["value"]
    for number in range(8):  # the points of each thread are in the order of its calls
        of_thread = values[values // 10_000 == number] % 10_000
        assert of_thread.tolist() == list(range(3000))
    assert len(values) == 24_000


def test_a_refused_value_leaves_no_empty_slot_that_blocks_readers(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.log("n", 1)
    journal.log("n", 2**70)  # does not fit a record
    with pytest.raises(Exception, match="step"):
        journal.log("n", 3, step=2**63)
    journal.log("n", 4)
    (records,) = read_records(tmp_path).values()
    kinds = [kind for kind in records["kind"].tolist() if kind != layout.VOID]
    assert kinds == [layout.INT, layout.BIG_INT, layout.INT]


def test_readers_wait_for_an_empty_slot_only_while_its_process_lives(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        journal = Journal(os.environ["FOLDER"])
        journal.log("n", 1.0)
        journal._segment[0]()  # a thread that has claimed its slot and not yet filled it
        journal.log("n", 3.0)
        os.write(1, b"x")
        sys.stdin.read()
        """,
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"x"
    (stem,) = stems(tmp_path)
    live = JournalReader(tmp_path, stem).read(Position(), limit=100)
    assert len(live.records) == 1
    assert len(JournalReader(tmp_path, stem).read(Position(), limit=100, final=True).records) == 2
    process.kill()
    process.communicate()
    rest = JournalReader(tmp_path, stem).read(live.position, limit=100)
    assert rest.records["value"].copy().view(np.float64).tolist() == [3.0]
    assert len(JournalReader(tmp_path, stem).read(rest.position, limit=100).records) == 0


def test_a_zombie_counts_as_dead(tmp_path: Path) -> None:
    process = start_script(tmp_path, 'Journal(os.environ["FOLDER"]).log("n", 1.0)')
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    (segment,) = tmp_path.glob("*.seg")
    header = layout.Header.unpack(segment.read_bytes())
    assert header is not None
    assert header.pid == process.pid
    assert layout.writer_is_dead(header)
    process.communicate()


def test_a_full_disk_does_not_stop_the_script_and_lost_points_are_counted(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        import resource, time
        journal = Journal(os.environ["FOLDER"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))  # simulates a full disk
        for index in range(2000):
            journal.log("n", float(index))
        assert journal.dropped == 2000 - ((1 << 14) - 256) // 32, journal.dropped
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            dropped = journal.dropped
            journal.log("n", -1.0)
            if journal.dropped == dropped:
                break
        """,
    )
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stderr.decode().count("metrics cannot be written") == 1
    (stem,) = stems(tmp_path)
    batch = JournalReader(tmp_path, stem).read(Position(), limit=10**9)
    values = batch.records["value"].copy().view(np.float64)
    assert values[:504].tolist() == [float(index) for index in range(504)]
    assert values[504:].tolist() == [-1.0]
    final = JournalReader(tmp_path, stem).read(Position(), limit=10**9, final=True)
    assert final.position.dropped >= 2000 - 504


def test_lost_points_are_counted_exactly_after_kill_9(tmp_path: Path) -> None:
    """The disk stays full until the end: no further segment could record the number."""
    process = start_script(
        tmp_path,
        """
        import resource, signal
        journal = Journal(os.environ["FOLDER"])
        journal.log("n", 0.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, resource.RLIM_INFINITY))  # simulates a full disk
        for index in range(2000):
            journal.log("n", float(index))
        journal.log_list("list", range(1000))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    process.communicate()
    (stem,) = stems(tmp_path)
    batch = JournalReader(tmp_path, stem).read(Position(), limit=10**9, final=True)
    assert len(batch.records) + batch.position.dropped == 1 + 2000 + 1000


def test_a_journal_that_could_write_nothing_reports_its_lost_points(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        journal = Journal(os.environ["FOLDER"])
        for index in range(50):
            journal.log("n", float(index))
        """,
    )
    _, stderr = process.communicate()
    assert "50 metric points were lost" in stderr.decode()
    (stem,) = stems(tmp_path)
    batch = JournalReader(tmp_path, stem).read(Position(), limit=100, final=True)
    assert (len(batch.records), batch.position.dropped) == (0, 50)


def test_points_follow_a_folder_that_is_moved(tmp_path: Path) -> None:
    folder = tmp_path / "old" / "journal"
    journal = Journal(folder)
    journal.log("before", 1.0)
    folder.parent.rename(tmp_path / "new")
    for index in range(2000):
        journal.log("after", float(index))
    journal.log("text", "word")
    moved = tmp_path / "new" / "journal"
    (stem,) = stems(moved)
    records = JournalReader(moved, stem).read(Position(), limit=10**9).records
    assert len(records) == 2002
    assert sorted(JournalReader(moved, stem).names().values()) == ["after", "before", "text"]
    assert not folder.exists()


def test_logging_continues_after_the_script_has_closed_all_descriptors(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        journal = Journal(os.environ["FOLDER"])
        journal.log("n", 0.0)
        os.closerange(3, 100)
        for index in range(1, 1000):
            journal.log("n", float(index))
        assert journal.dropped == 0
        """,
    )
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    (records,) = read_records(tmp_path).values()
    assert len(records) == 1000


def test_lost_points_are_reported_at_exit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    process = start_script(tmp_path / "file" / "journal", 'Journal(os.environ["FOLDER"]).log("n", 1.0)')
    _, stderr = process.communicate()
    assert process.returncode == 0
    assert "1 metric points were lost" in stderr.decode()


def test_ctrl_c_during_logging_does_not_block_readers_forever(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        import signal
        journal = Journal(os.environ["FOLDER"])
        interrupts = 0
        raised = 0
        def interrupt(*_):
            global raised
            raised += 1
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        while interrupts < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                for _ in range(100_000):
                    journal.log("n", 1.0)
            except KeyboardInterrupt:
                interrupts += 1
        assert raised == interrupts, f"{raised - interrupts} of {raised} were swallowed"
        journal.log("n", 7)
        os.write(1, b"x")
        sys.stdin.read()
        """,
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"x"
    deadline = time.monotonic() + 10
    last = None
    while last != (layout.INT, 7) and time.monotonic() < deadline:
        (records,) = read_records(tmp_path).values()
        last = (records["kind"][-1], records["value"][-1]) if len(records) else None
    assert process.poll() is None
    process.communicate(b"")
    assert last == (layout.INT, 7)


def test_a_signal_handler_may_log_while_the_script_logs(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        import signal
        journal = Journal(os.environ["FOLDER"])
        import itertools
        numbers = itertools.count()
        def handle(*_):
            number = next(numbers)
            journal.log("handled", f"handler {number}")
            journal.log(f"handled name {number}", number)
            signal.setitimer(signal.ITIMER_REAL, 0.0003)
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        for index in range(20_000):
            journal.log("text", f"script {index}")
            if index % 20 == 0:
                journal.log(f"name {index}", index)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        os.write(1, str(next(numbers)).encode())
        """,
    )
    out, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    handled = int(out)
    (stem,) = stems(tmp_path)
    reader = JournalReader(tmp_path, stem)
    records = reader.read(Position(), limit=10**9).records
    names = reader.names()
    by_name: dict[str, list[Any]] = {}
    texts = iter(reader.side_lines(records[records["kind"] == layout.TEXT]["value"].tolist()))
    for record in records[records["kind"] != layout.VOID]:
        value = next(texts) if record["kind"] == layout.TEXT else int(record["value"])
        by_name.setdefault(names[int(record["metric"])], []).append(value)
    assert by_name.pop("text") == [f"script {index}" for index in range(20_000)]
    assert by_name.pop("handled") == [f"handler {index}" for index in range(handled)]
    expected = {f"name {index}": [index] for index in range(0, 20_000, 20)}
    expected |= {f"handled name {index}": [index] for index in range(handled)}
    assert by_name == expected
    assert handled > 0


def test_logging_after_close_opens_new_files(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.log("n", 1)
    journal.close()
    journal.log("n", 2)
    assert sorted(records["value"].tolist() for records in read_records(tmp_path).values()) == [[1], [2]]


def test_the_journal_works_on_the_oldest_python_of_this_machine(tmp_path: Path) -> None:
    process = start_script(
        tmp_path,
        """
        assert sys.version_info[:2] == (3, 9)
        journal = Journal(os.environ["FOLDER"], rank=3)
        for index in range(2000):
            journal.log("n", index, step=index)
        journal.log_row("row", x=1, y="a")
        journal.log_list("list", (x / 2 for x in range(3)))
        assert "numpy" not in sys.modules
        """,
        python=pythons()[0].path,
    )
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr.decode()
    (stem,) = stems(tmp_path)
    batch = JournalReader(tmp_path, stem).read(Position(), limit=10**9)
    assert batch.rank == 3
    assert batch.records["value"][:2000].tolist() == list(range(2000))
    assert batch.records["kind"][2000:].tolist() == [layout.ROW, layout.LIST]
    assert JournalReader(tmp_path, stem).names() == {0: "n", 1: "row", 2: "list"}


def test_a_signal_handler_may_log_a_text_while_the_first_text_is_logged(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from runyard.context.journal import Journal
journal = Journal({str(tmp_path)!r})
signal.signal(signal.SIGUSR1, lambda *_: journal.log("why", "preempted"))

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name.startswith("json."):  # during an import that writing a text might trigger
            os.kill(os.getpid(), signal.SIGUSR1)

sys.meta_path.insert(0, Interrupting())
journal.log("note", "text")
os.kill(os.getpid(), signal.SIGUSR1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    (side,) = tmp_path.glob("*.side")
    assert set(side.read_text().splitlines()) == {'"text"', '"preempted"'}
