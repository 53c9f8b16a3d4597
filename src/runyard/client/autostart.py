"""Starting the yard of a home folder when nobody answers there."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from runyard import errors
from runyard.client.home import usable
from runyard.errors import RunyardException, YardUnavailable
from runyard.launch.variables import ROLE, clean
from runyard.spec.folder import HomeFolder

_PATIENCE_S = 60.0
_LINE_PATIENCE_S = 120.0


def start_yard(home: Path, answers: Callable[[], bool]) -> None:
    """Returns when the yard of this home answers, whoever started it. Many may call this at once."""
    if "RUNYARD_YARD_ELSEWHERE" in os.environ:
        _wait_for_the_line(answers)
        return
    usable(home)
    deadline = time.monotonic() + _PATIENCE_S
    pause_s = 0.01
    chances = 3  # one that was killed while it started says nothing about the next
    while not answers():
        if _nobody_holds(HomeFolder(home).yard_lock):
            code = _spawn(home)  # 0: it answers, or it gave way to another that is about to
            chances -= code != 0
            if code != 0 and (chances == 0 or HomeFolder(home).start_failure.exists()):
                raise _reason(home, f"it ended with exit code {code}")
        elif time.monotonic() > deadline:
            raise _reason(home, f"it did not answer within {_PATIENCE_S:.0f} s")
        else:
            time.sleep(pause_s)  # somebody else's is starting, or closing
            pause_s = min(pause_s * 1.5, 0.1)


def _wait_for_the_line(answers: Callable[[], bool]) -> None:
    """This machine is one of the yard's hosts: what leads to the yard is made again by the yard itself, after a cut."""
    deadline = time.monotonic() + _LINE_PATIENCE_S
    while not answers():
        if time.monotonic() > deadline:
            raise YardUnavailable(
                f"the yard is on another machine, and the line to it has been cut for {_LINE_PATIENCE_S:.0f} s",
                hint="metrics, logs and outputs need no line: they are brought to the yard when it is back",
            )
        time.sleep(0.2)


def _spawn(home: Path) -> int:
    inside_a_run = "RUNYARD_RUN_ID" in os.environ
    # a script's Python has only the node kit, and its variables are its run's: neither is for the yard
    python = os.environ.get("RUNYARD_YARD_PYTHON", sys.executable) if inside_a_run else sys.executable
    variables = clean(os.environ) if inside_a_run else dict(os.environ)
    with open(HomeFolder(home).yard_log, "ab") as log:
        return subprocess.call(
            [python, "-m", "runyard.yard", "--home", str(home), "--detach"],
            env={**variables, ROLE: "yard"},  # so that it is not taken for a process of the run that started it
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
            start_new_session=True,  # Ctrl-C in this terminal is not meant for the yard
        )


def _nobody_holds(lock: Path) -> bool:
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False


def _reason(home: Path, otherwise: str) -> RunyardException:
    """The yard's own words, when it left any."""
    try:
        said = json.loads(HomeFolder(home).start_failure.read_text(encoding="utf-8"))
        kind = getattr(errors, said["code"], YardUnavailable)
        error: RunyardException = kind(said["message"], hint=said["hint"])
        return error
    except (OSError, ValueError, KeyError):
        return YardUnavailable(f"the yard of {home} could not be started: {otherwise}", hint=f"see {HomeFolder(home).yard_log}")
