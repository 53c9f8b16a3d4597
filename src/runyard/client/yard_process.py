"""The yard's process, found through its lock: also when its socket was removed or it does not respond."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard.errors import RunyardException
from runyard.posix import file_lock, procfs
from runyard.spec.folder import HomeFolder

_STARTING_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 30.0
_POLL_S = 0.02


def find_yard(home: Path) -> Optional[int]:
    """The process id of the yard of a home folder; None if it is not running.

    The id is in the lock file. Only a process that has this file open is the yard: after a crash, the id may belong
    to another program.
    """
    lock = HomeFolder(home).yard_lock
    deadline = time.monotonic() + _STARTING_TIMEOUT_S
    while True:
        pid = file_lock.holder(lock)
        if pid is None:
            return None
        if pid and procfs.has_open(pid, lock):
            return pid
        if time.monotonic() > deadline:
            return None
        time.sleep(_POLL_S)  # it is starting and has not written its id yet


def stop_yard(home: Path) -> Optional[int]:
    """Stop the yard and wait for its end; returns its process id, or None if it was not running."""
    pid = find_yard(home)
    if pid is None:
        return None
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return pid
    try:
        if find_yard(home) == pid:  # otherwise it has ended, and the id may be that of a new process
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while procfs.start_ticks(pid) is not None:
            if time.monotonic() > deadline:
                raise RunyardException(
                    f"the yard (process {pid}) did not stop within {_STOP_TIMEOUT_S:.0f} s",
                    hint=f"end it with kill -9 {pid}; nothing is lost, and runs continue",
                )
            time.sleep(_POLL_S)
    finally:
        os.close(process)
    return pid
