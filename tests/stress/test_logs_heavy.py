"""Logs of any size and content: streamed, downloaded, followed by several, left in the middle."""

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


def streamed(shown: bytes) -> bytes:
    """What stands below the title of the driver log, up to the summary."""
    return shown.partition(b"=" * (len(NAME) + 10) + b"\n\n")[2].rpartition(b"\nExecution Summary")[0]


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
    shown, _ = follower.communicate(timeout=200)
    assert follower.returncode == 0
    line = b"0123456789" * 9 + b" %07d\n"
    wanted = hashlib.sha256()
    for n in range(1_010_000):
        wanted.update(line % n)
    assert hashlib.sha256(streamed(shown)).hexdigest() == wanted.hexdigest()
    run.download_file(NAME, str(tmp_path / "log"))
    assert hashlib.sha256((tmp_path / "log").read_bytes()).hexdigest() == wanted.hexdigest()


def test_binary_bytes_and_lines_without_end_survive(experiment: Experiment, project, tmp_path: Path) -> None:
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
    shown, _ = follower.communicate(timeout=100)
    run.download_file(NAME, str(tmp_path / "log"))
    wanted = bytes(range(256)) * 100 + b"\n" + b"x" * 10_000_000 + b"\n"
    wanted += b"".join("日本語 ünï 🎈".encode()[: n % 23] + b"|" for n in range(3000))
    wanted += b"\r50%\r100% no newline at the end"
    assert (tmp_path / "log").read_bytes() == wanted
    text = streamed(shown).decode()
    assert text.replace("\r\n", "\n") == wanted.decode(errors="replace").replace("\r\n", "\n")


@pytest.mark.real
def test_followers_at_any_time_see_the_whole_log(experiment: Experiment, project, tmp_path: Path) -> None:
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
    shown: dict[str, bytes] = {}
    readers = [
        threading.Thread(target=lambda who=who, name=name: shown.setdefault(name, who.communicate(timeout=100)[0]))
        for name, who in (("first", first), ("second", second))
    ]
    for reader in readers:
        reader.start()
    eventually(lambda: run.get_status() == "Running", "it runs")
    time.sleep(1.0)
    late = follow(experiment, run)
    readers.append(threading.Thread(target=lambda: shown.setdefault("late", late.communicate(timeout=100)[0])))
    readers[-1].start()
    time.sleep(0.5)
    stop.touch()
    for reader in readers:
        reader.join(100)
    shown["after"] = follow(experiment, run).communicate(timeout=100)[0]
    run.download_file(NAME, str(tmp_path / "log"))
    whole = (tmp_path / "log").read_bytes()
    assert whole.splitlines()[-1] == b"last %d" % (len(whole.splitlines()) - 1)
    for name in ("first", "second", "late", "after"):
        assert streamed(shown[name]) == whole, name


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
    eventually(lambda: run.get_status() == "Running", "the yard has heard that it runs")
    go.touch()
    assert run.wait_for_completion()["status"] == "Completed"


@pytest.mark.real
def test_a_slow_reader_slows_nobody_down(experiment: Experiment, project, home: Path) -> None:
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
    eventually(lambda: run.get_status() == "Running", "the yard has heard that it runs")
    go.touch()
    follower.communicate(timeout=30)
