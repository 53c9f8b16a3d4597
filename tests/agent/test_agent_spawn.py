"""Starting programs, and the errors if they cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.agent.process.spawn import SpawnError, StandbyGone, StandbyProcess, spawn
from support import eventually, is_alive

VARIABLES = {"PATH": "/bin:/usr/bin"}
BOTH = ["/bin/sh", "-c", "echo out; echo err >&2"]


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_an_agent_with_a_closed_stream_starts_scripts_with_all_three(tmp_path: Path, closed: int) -> None:
    log = tmp_path / "log"
    import_spawn = "from runyard.agent.process.spawn import spawn"
    code = f"import os; {import_spawn}; spawn({BOTH!r}, {VARIABLES!r}, cwd='/', log={str(log)!r})"
    subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {closed}>&-', sys.executable, f"{code}; os.wait()"], check=True
    )
    assert log.read_text() == "out\nerr\n"


@pytest.mark.parametrize(
    ("argv", "message"), [(["/nope/python"], "cannot run /nope/python"), (["/bin/sh", "\ud83d"], "is not valid text")]
)
def test_a_failed_start_reports_the_reason_and_leaves_no_process(tmp_path: Path, argv: list[str], message: str) -> None:
    with pytest.raises(SpawnError, match=message):
        spawn(argv, VARIABLES, cwd="/", log=str(tmp_path / "log"))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_standby_process_that_was_killed_is_reported_as_gone(tmp_path: Path) -> None:
    standby = StandbyProcess()
    os.kill(standby.pid, signal.SIGTERM)
    eventually(lambda: not is_alive(standby.pid), "it has ended")
    with pytest.raises(StandbyGone):
        standby.execute(BOTH, VARIABLES, cwd="/", log=str(tmp_path / "log"))


def test_a_standby_process_can_be_discarded() -> None:
    standby = StandbyProcess()
    standby.discard()
    assert not is_alive(standby.pid)
