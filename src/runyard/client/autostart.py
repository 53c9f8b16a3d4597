"""Starts the yard of a home folder if it is not running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from runyard import errors
from runyard.client.home import prepare_home
from runyard.errors import RunyardException, YardUnavailable
from runyard.launch.variables import ROLE, clean_environment
from runyard.posix import file_lock
from runyard.spec.folder import HomeFolder

_TIMEOUT_S = 60.0
_REMOTE_TIMEOUT_S = 120.0


def start_yard(home: Path, is_running: Callable[[], bool]) -> None:
    """Return when the yard of this home accepts connections. Any number of processes may call this concurrently."""
    if "RUNYARD_YARD_ELSEWHERE" in os.environ:
        _wait_for_remote_yard(is_running)
        return
    prepare_home(home)
    folder = HomeFolder(home)
    deadline = time.monotonic() + _TIMEOUT_S
    pause_s = 0.01
    tries_left = 3  # a yard that was killed while starting does not prevent the next one from starting
    while not is_running():
        if not file_lock.is_held(folder.yard_lock):
            code = _spawn(folder)  # 0: it is running, or another one holds the lock and is about to
            tries_left -= code != 0
            if code != 0 and (tries_left == 0 or folder.start_failure.exists()):
                raise _start_error(folder, f"it exited with code {code}")
        elif time.monotonic() > deadline:
            raise _start_error(folder, f"no response within {_TIMEOUT_S:.0f} s")
        else:
            time.sleep(pause_s)  # another process's yard is starting or stopping
            pause_s = min(pause_s * 1.5, 0.1)


def _wait_for_remote_yard(is_running: Callable[[], bool]) -> None:
    """Wait for the forwarded socket: on a remote host, only the yard itself can restore the connection."""
    deadline = time.monotonic() + _REMOTE_TIMEOUT_S
    while not is_running():
        if time.monotonic() > deadline:
            raise YardUnavailable(
                f"the yard runs on another machine, and the connection to it is down for {_REMOTE_TIMEOUT_S:.0f} s",
                hint="metrics, logs and outputs do not need the connection: the yard collects them later",
            )
        time.sleep(0.2)


def _spawn(home: HomeFolder) -> int:
    inside_a_run = "RUNYARD_RUN_ID" in os.environ
    # a script's Python has only the node package, and its variables belong to its run: the yard needs neither
    python = os.environ.get("RUNYARD_YARD_PYTHON", sys.executable) if inside_a_run else sys.executable
    variables = clean_environment(os.environ) if inside_a_run else dict(os.environ)
    with open(home.yard_log, "ab") as log:
        return subprocess.call(
            [python, "-m", "runyard.yard", "--home", str(home.root), "--detach"],
            env={**variables, ROLE: "yard"},  # otherwise it would count as a process of the run that started it
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            start_new_session=True,  # Ctrl-C in this terminal must not stop the yard
        )


def _start_error(home: HomeFolder, detail: str) -> RunyardException:
    """The error that the yard wrote before it exited, or a general one with ``detail``."""
    try:
        failure = json.loads(home.start_failure.read_text(encoding="utf-8"))
        kind = getattr(errors, failure["code"], YardUnavailable)
        error: RunyardException = kind(failure["message"], hint=failure["hint"])
        return error
    except (OSError, ValueError, KeyError):
        return YardUnavailable(f"the yard of {home.root} could not be started: {detail}", hint=f"see {home.yard_log}")
