"""From an order to the program: what a process becomes, and what is said when it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.agent.process.spawn import CannotStart, Child, ChildGone, start
from support import eventually, is_alive

VARIABLES = {"PATH": "/bin:/usr/bin"}
BOTH = ["/bin/sh", "-c", "echo out; echo err >&2"]


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_an_agent_whose_stream_is_closed_starts_scripts_with_all_three(tmp_path: Path, closed: int) -> None:
    log = tmp_path / "log"
    spawn = "from runyard.agent.process.spawn import start"
    code = f"import os; {spawn}; start({BOTH!r}, {VARIABLES!r}, cwd='/', log={str(log)!r})"
    subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {closed}>&-', sys.executable, f"{code}; os.wait()"], check=True
    )
    assert log.read_text() == "out\nerr\n"


@pytest.mark.parametrize(
    ("argv", "said"), [(["/nope/python"], "cannot run /nope/python"), (["/bin/sh", "\ud83d"], "is not valid text")]
)
def test_what_cannot_be_started_says_why_and_leaves_no_process(tmp_path: Path, argv: list[str], said: str) -> None:
    with pytest.raises(CannotStart, match=said):
        start(argv, VARIABLES, cwd="/", log=str(tmp_path / "log"))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_process_that_was_ended_while_it_waited_is_told_from_a_script_that_was(tmp_path: Path) -> None:
    child = Child()
    os.kill(child.pid, signal.SIGTERM)
    eventually(lambda: not is_alive(child.pid), "it has ended")
    with pytest.raises(ChildGone):
        child.become(BOTH, VARIABLES, cwd="/", log=str(tmp_path / "log"))


def test_a_process_that_is_not_needed_goes() -> None:
    child = Child()
    child.dismiss()
    assert not is_alive(child.pid)
