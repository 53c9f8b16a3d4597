"""Finding every process of a run, and stopping them all.

A process belongs to a run if it has the run's tag in its environment, or descends from such a process or from the
run's agent. A yard that a script started does not belong to the run, nor do the runs of that yard: they have a role
or another tag, and are left alone together with their descendants.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Optional

from runyard import clock
from runyard.launch.variables import PROCESS_TAG, ROLE
from runyard.posix import procfs
from runyard.posix.procfs import Stat

_KILL_TIMEOUT_S = 10.0  # a process in an uninterruptible wait survives SIGKILL until its disk responds
_POLL_S = 0.25
_ROLE = b"\0" + ROLE.encode() + b"="
_TAG = b"\0" + PROCESS_TAG.encode() + b"="


def stop_processes(
    tag: str,
    grace_s: float,
    *,
    root: Optional[int] = None,
    reap: Callable[[], object] = lambda: None,
    variable: str = "",
    launchers: Collection[int] = (),
) -> int:
    """Send SIGTERM to all processes of a run, and SIGKILL to those that remain after ``grace_s``. Idempotent.

    Args:
        tag: The run's tag.
        grace_s: Seconds between SIGTERM and SIGKILL.
        root: Also stop the descendants of this process; an agent passes its own pid.
        reap: Called repeatedly to reap children.
        variable: NAME=value that processes must have in their environment, to spare those of other nodes of the run.
        launchers: Process ids that get SIGTERM after all others have ended: a launcher that is stopped first would
            kill ranks that are still saving their work.

    Returns:
        The number of remaining processes: 0, unless the kernel is stuck.
    """
    deadline = clock.monotonic() + grace_s
    signaled: set[tuple[int, int]] = set()
    while clock.monotonic() < deadline:
        processes = find_processes(tag, root, variable=variable)
        targets = [process for process in processes if process.pid not in launchers] or processes
        if not targets:
            break
        for process in targets:
            if (process.pid, process.start_ticks) not in signaled:
                signaled.add((process.pid, process.start_ticks))
                send_signal(process, signal.SIGTERM)
                send_signal(process, signal.SIGCONT)  # a suspended process handles SIGTERM only when it continues
        wait_for_exits(targets, min(_POLL_S, deadline - clock.monotonic()))
        reap()
    return _kill_processes(tag, root, reap, variable)


def _kill_processes(tag: str, root: Optional[int], reap: Callable[[], object], variable: str) -> int:
    give_up = clock.monotonic() + _KILL_TIMEOUT_S
    empty_scans = 0
    while True:
        reap()
        processes = find_processes(tag, root, variable=variable)
        if not processes:
            # a scan is not atomic: it can miss a child whose parent just ended, or a process during its exec
            empty_scans += 1
            if empty_scans == 2:
                return 0
            time.sleep(0.002)
            continue
        empty_scans = 0
        if clock.monotonic() > give_up:
            return len(processes)
        for process in processes:  # suspend all of them first, or they could fork faster than they are killed
            send_signal(process, signal.SIGSTOP)
        for process in processes:
            send_signal(process, signal.SIGKILL)
        wait_for_exits(processes, _POLL_S)


def find_processes(
    tag: str, root: Optional[int] = None, *, descendants_only: bool = False, variable: str = ""
) -> list[Stat]:
    """The living processes of a run. With ``descendants_only``, only those below ``root``, which is cheaper."""
    me = os.getpid()
    table = _process_table()
    children: dict[int, list[int]] = defaultdict(list)
    for process in table.values():
        children[process.parent].append(process.pid)
    run_tag = _TAG + _encode(tag) + b"\0"
    required = b"\0" + _encode(variable) + b"\0" if variable else b""
    pids: set[int] = set()
    if not descendants_only:
        for pid in table:
            environment = procfs.environment(pid)
            if run_tag in environment and required in environment and _ROLE not in environment and pid != me:
                pids.add(pid)
    queue = [*pids, *([root] if root is not None else [])]
    while queue:
        for pid in children[queue.pop()]:
            if pid not in pids and pid != me and not _is_foreign(procfs.environment(pid), run_tag):
                pids.add(pid)
                queue.append(pid)
    return [table[pid] for pid in sorted(pids)]


def child_pids(pid: int) -> list[int]:
    return sorted(process.pid for process in _process_table().values() if process.parent == pid)


def send_signal(process: Stat, number: signal.Signals) -> None:
    """Signal this very process, not another one that has been given its pid since."""
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            handle = os.pidfd_open(process.pid)
            try:
                if _is_alive(process):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
        elif _is_alive(process):
            os.kill(process.pid, number)
    except OSError:  # it has ended, or has changed its user: then it is counted as remaining
        return


def wait_for_exits(processes: Sequence[Stat], timeout_s: float) -> None:
    """Return when all of them have ended, or after ``timeout_s``."""
    deadline = clock.monotonic() + max(timeout_s, 0.0)
    handles = [handle for process in processes[:200] for handle in _open_handle(process)]
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    try:
        if processes and not handles:  # all have ended, or this machine has no pidfd
            time.sleep(min(0.01, max(timeout_s, 0.0)))
        remaining = len(handles)
        while remaining and clock.monotonic() < deadline:
            for handle, _ in poll.poll(max(deadline - clock.monotonic(), 0.0) * 1000):
                poll.unregister(handle)
                remaining -= 1
    finally:
        for handle in handles:
            os.close(handle)


def _open_handle(process: Stat) -> list[int]:
    try:
        return [os.pidfd_open(process.pid)]
    except (OSError, AttributeError):  # ended; or an old kernel or Python
        return []


def _process_table() -> dict[int, Stat]:
    processes = map(procfs.stat, procfs.process_ids())
    return {process.pid: process for process in processes if process is not None and not process.has_ended}


def _is_alive(process: Stat) -> bool:
    current = procfs.stat(process.pid)
    return current is not None and not current.has_ended and current.start_ticks == process.start_ticks


def _is_foreign(environment: bytes, run_tag: bytes) -> bool:
    return _ROLE in environment or (_TAG in environment and run_tag not in environment)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
