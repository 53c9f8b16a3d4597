"""Finding every process of a run, and stopping them all.

A process belongs to a run when it carries the run's tag in its environment, or descends from one that does or from
the run's agent. A yard that a script started is not its run's, and neither is a run which that yard holds: they
carry a role or another tag, and are left alone with all that descends from them.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Optional

from runyard import clock
from runyard.launch.variables import PROCESS_TAG, ROLE

_LAST_RESORT_S = 10.0  # a process in an uninterruptible wait outlives SIGKILL until its disk answers
_LOOK_AGAIN_S = 0.25
_ROLE = b"\0" + ROLE.encode() + b"="
_TAG = b"\0" + PROCESS_TAG.encode() + b"="


class Process(NamedTuple):
    pid: int
    parent: int
    started: int  # in ticks since boot; with the pid it names a process for ever
    resident_pages: int


def stop_everything(
    tag: str,
    grace_s: float,
    *,
    root: Optional[int] = None,
    reap: Callable[[], object] = lambda: None,
    mark: str = "",
    last: Collection[int] = (),
) -> int:
    """Ask politely, wait up to ``grace_s``, then kill. Returns how many are left: 0, unless the kernel is stuck.

    ``root`` also takes in whatever descends from that process (an agent gives itself). ``mark``, a NAME=value, leaves
    alone what carries the tag on another node of the run. ``last`` are not asked while others are there: a launcher
    that is told first would kill what is still saving its work. Blocks; doing it twice is safe.
    """
    deadline = clock.monotonic() + grace_s
    told: set[tuple[int, int]] = set()
    while clock.monotonic() < deadline:
        everybody = find(tag, root, mark=mark)
        found = [process for process in everybody if process.pid not in last] or everybody
        if not found:
            break
        for process in found:
            if (process.pid, process.started) not in told:
                told.add((process.pid, process.started))
                send(process, signal.SIGTERM)
                send(process, signal.SIGCONT)  # a suspended process hears nothing until it goes on
        wait_for_exits(found, min(_LOOK_AGAIN_S, deadline - clock.monotonic()))
        reap()
    return _kill_everything(tag, root, reap, mark)


def _kill_everything(tag: str, root: Optional[int], reap: Callable[[], object], mark: str) -> int:
    give_up = clock.monotonic() + _LAST_RESORT_S
    clean_looks = 0
    while True:
        reap()
        found = find(tag, root, mark=mark)
        if not found:
            # a look is not a photograph: a child whose parent ended meanwhile, or one in the middle of its exec,
            # can be missed once
            clean_looks += 1
            if clean_looks == 2:
                return 0
            time.sleep(0.002)
            continue
        clean_looks = 0
        if clock.monotonic() > give_up:
            return len(found)
        for process in found:  # all are frozen first, or they would fork faster than they are killed
            send(process, signal.SIGSTOP)
        for process in found:
            send(process, signal.SIGKILL)
        wait_for_exits(found, _LOOK_AGAIN_S)


def find(tag: str, root: Optional[int] = None, *, everywhere: bool = True, mark: str = "") -> list[Process]:
    """The living processes of a run. ``everywhere=False`` looks only below ``root``, and costs less."""
    me = os.getpid()
    table = _table()
    children: dict[int, list[int]] = defaultdict(list)
    for process in table.values():
        children[process.parent].append(process.pid)
    own = _TAG + tag.encode("utf-8", "surrogateescape") + b"\0"
    marked = b"\0" + mark.encode("utf-8", "surrogateescape") + b"\0" if mark else b""
    mine: set[int] = set()
    if everywhere:
        for pid in table:
            environment = _environment(pid)
            if own in environment and marked in environment and _ROLE not in environment and pid != me:
                mine.add(pid)
    ahead = [*mine, *([root] if root is not None else [])]
    while ahead:
        for pid in children[ahead.pop()]:
            if pid not in mine and pid != me and not _is_of_others(_environment(pid), own):
                mine.add(pid)
                ahead.append(pid)
    return [table[pid] for pid in sorted(mine)]


def children_of(pid: int) -> list[int]:
    return sorted(process.pid for process in _table().values() if process.parent == pid)


def send(process: Process, number: signal.Signals) -> None:
    """Only ever to this very process: its pid may be somebody else's by now."""
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            handle = os.pidfd_open(process.pid)
            try:
                if _is_same(process):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
        elif _is_same(process):
            os.kill(process.pid, number)
    except OSError:  # it ended by itself, or changed its user: then the count says so
        return


def wait_for_exits(processes: Sequence[Process], timeout_s: float) -> None:
    """Until all of them have ended, at most ``timeout_s``."""
    deadline = clock.monotonic() + max(timeout_s, 0.0)
    handles = [handle for process in processes[:200] for handle in _handles(process)]
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    try:
        if processes and not handles:  # all ended since, or nothing here can be waited on
            time.sleep(min(0.01, max(timeout_s, 0.0)))
        left = len(handles)
        while left and clock.monotonic() < deadline:
            for handle, _ in waiting.poll(max(deadline - clock.monotonic(), 0.0) * 1000):
                waiting.unregister(handle)
                left -= 1
    finally:
        for handle in handles:
            os.close(handle)


def _handles(process: Process) -> list[int]:
    try:
        return [os.pidfd_open(process.pid)]
    except (OSError, AttributeError):  # ended; or an old kernel, or a Python built without it
        return []


def _table() -> dict[int, Process]:
    table = {}
    with os.scandir("/proc") as entries:
        for entry in entries:
            process = _look_at(int(entry.name)) if entry.name.isdigit() else None
            if process is not None:
                table[process.pid] = process
    return table


def _look_at(pid: int) -> Optional[Process]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the name of a program may hold spaces and brackets, so the fields are counted from its end
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    state, threads = fields[0], int(fields[17])
    if state in (b"Z", b"X", b"x") and threads <= 1:  # with threads, only the first one of them has ended
        return None
    return Process(pid, int(fields[1]), int(fields[19]), int(fields[21]))


def _is_same(process: Process) -> bool:
    now = _look_at(process.pid)
    return now is not None and now.started == process.started


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except OSError:
        return b""


def _is_of_others(environment: bytes, own: bytes) -> bool:
    return _ROLE in environment or (_TAG in environment and own not in environment)
