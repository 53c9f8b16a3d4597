"""Logs of any size and content: streamed, downloaded, followed by several clients, abandoned."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runyard import Experiment, Run
from support import eventually, with_this_python

NAME = "azureml-logs/70_driver_log.txt"


def follow(experiment: Experiment, run: Run) -> subprocess.Popen[bytes]:
    code = (
        "from runyard import *\n"
        f"Run(Experiment(Workspace(), {experiment.name!r}), {run.id!r}).wait_for_completion(show_output=True)"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"})


def streamed(output: bytes) -> bytes:
    """The lines between the title of the driver log and the summary."""
    return output.partition(b"=" * (len(NAME) + 10) + b"\n\n")[2].rpartition(b"\nExecution Summary")[0]


@pytest.mark.real
def test_a_hundred_megabytes_are_streamed_and_downloaded_byte_for_byte(
    experiment: Experiment, project, tmp_path: Path
) -> None:
    script = """
import sys
line = b'0123456789' * 9 + b' %07d\\n'
for n in range(1_010_000):
    sys.stdout.buffer.write(line % n)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    follower = follow(experiment, run)
    output, _ = follower.communicate(timeout=200)
    assert follower.returncode == 0
    line = b"0123456789" * 9 + b" %07d\n"
    expected = hashlib.sha256()
    for n in range(1_010_000):
        expected.update(line % n)
    assert hashlib.sha256(streamed(output)).hexdigest() == expected.hexdigest()
    run.download_file(NAME, str(tmp_path / "log"))
    assert hashlib.sha256((tmp_path / "log").read_bytes()).hexdigest() == expected.hexdigest()


def test_binary_data_and_endless_lines_are_unchanged(experiment: Experiment, project, tmp_path: Path) -> None:
    script = """
import sys
out = sys.stdout.buffer
out.write(bytes(range(256)) * 100 + b'\\n')
out.write(b'x' * 10_000_000 + b'\\n')
for n in range(3000):
    out.write('日本語 ünï 🎈'.encode()[:n % 23] + b'|')
    out.flush()
out.write(b'\\r50%\\r100% no newline at the end')
"""
    run = experiment.submit(with_this_python(project(train=script)))
    follower = follow(experiment, run)
    output, _ = follower.communicate(timeout=100)
    run.download_file(NAME, str(tmp_path / "log"))
    expected = bytes(range(256)) * 100 + b"\n" + b"x" * 10_000_000 + b"\n"
    expected += b"".join("日本語 ünï 🎈".encode()[: n % 23] + b"|" for n in range(3000))
    expected += b"\r50%\r100% no newline at the end"
    assert (tmp_path / "log").read_bytes() == expected
    text = streamed(output).decode()
    assert text.replace("\r\n", "\n") == expected.decode(errors="replace").replace("\r\n", "\n")


@pytest.mark.real
def test_followers_see_the_complete_log_at_any_time(experiment: Experiment, project, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    script = f"""
import os
n = 0
while not os.path.exists({str(stop)!r}):
    print(n); n += 1
print('last', n)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    first, second = follow(experiment, run), follow(experiment, run)
    output: dict[str, bytes] = {}
    readers = [
        threading.Thread(target=lambda who=who, name=name: output.setdefault(name, who.communicate(timeout=100)[0]))
        for name, who in (("first", first), ("second", second))
    ]
    for reader in readers:
        reader.start()
    eventually(lambda: run.get_status() == "Running", "it runs")
    log = run.folder / NAME
    eventually(lambda: log.stat().st_size > 100_000, "the script writes")
    late = follow(experiment, run)
    readers.append(threading.Thread(target=lambda: output.setdefault("late", late.communicate(timeout=100)[0])))
    readers[-1].start()
    size = log.stat().st_size
    eventually(lambda: log.stat().st_size > size + 100_000, "it writes more while all follow")
    stop.touch()
    for reader in readers:
        reader.join(100)
    output["after"] = follow(experiment, run).communicate(timeout=100)[0]
    run.download_file(NAME, str(tmp_path / "log"))
    complete_log = (tmp_path / "log").read_bytes()
    assert complete_log.splitlines()[-1] == b"last %d" % (len(complete_log.splitlines()) - 1)
    for name in ("first", "second", "late", "after"):
        assert streamed(output[name]) == complete_log, name


def test_ctrl_c_while_waiting_leaves_the_run_going(experiment: Experiment, project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"import os, time\nprint('on')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('through')"
    run = experiment.submit(with_this_python(project(train=script)))
    follower = follow(experiment, run)
    assert follower.stdout is not None
    while follower.stdout.readline() != b"on\n":
        pass
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=30)
    assert follower.returncode not in (0, None)
    eventually(lambda: run.get_status() == "Running", "the yard reports that it runs")
    go.touch()
    assert run.wait_for_completion()["status"] == "Completed"


@pytest.mark.real
def test_a_slow_reader_does_not_slow_down_others(experiment: Experiment, project, home: Path) -> None:
    script = "import sys\nfor n in range(300_000): print('x' * 80)"
    run = experiment.submit(with_this_python(project(train=script)))
    slow = follow(experiment, run)
    os.kill(slow.pid, signal.SIGSTOP)  # reads nothing while 24 MB are written
    try:
        assert run.wait_for_completion()["status"] == "Completed"
        began = time.monotonic()
        run.get_status()
        experiment.workspace.connection.get("/api/health")
        assert time.monotonic() - began < 2
    finally:
        os.kill(slow.pid, signal.SIGCONT)
    assert streamed(slow.communicate(timeout=60)[0]).count(b"\n") == 300_000


def test_a_line_is_seen_while_the_script_still_runs(experiment: Experiment, project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"""
import os, sys, time
print('out 1'); print('err 1', file=sys.stderr); print('out 2'); os.system('echo from a child')
while not os.path.exists({str(go)!r}): time.sleep(0.01)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    follower = follow(experiment, run)
    assert follower.stdout is not None
    lines: list[bytes] = []
    while b"from a child\n" not in lines:
        lines.append(follower.stdout.readline())
    assert lines[-4:] == [b"out 1\n", b"err 1\n", b"out 2\n", b"from a child\n"]
    eventually(lambda: run.get_status() == "Running", "the yard reports that it runs")
    go.touch()
    follower.communicate(timeout=30)
