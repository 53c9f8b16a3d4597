"""The agent of one run: one per run, however often it is started."""

from __future__ import annotations

import fcntl
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard.agent.event_log import Report
from runyard.agent.process.spawn import Child
from runyard.agent.retry import told
from runyard.agent.supervise.single_process import WATCHED, supervise
from runyard.launch.order import WorkOrder, read_order
from runyard.lifecycle.state import End, EndReason
from runyard.posix.namespaces import mount_read_only
from runyard.spec.folder import RunFolder

_BEGUN = {"script_started", "script_ended", "launch_failed", "node_started"}
_LOOKS = 20
_LOOK_S = 0.002
_LEAVING_S = 2.0
_OTHERS_S = 15.0


def main(
    order_path: str,
    ready: Callable[[], None] = lambda: None,
    report: type[Report] = Report,
    child: Optional[Child] = None,
) -> int:
    """Hold the run that the order describes, to its end. ``ready`` is called once this run has an agent; a ``child``
    that was forked ahead becomes its script.

    A second start is harmless: it finds the lock held, or the script begun, and ends.
    """
    prepare_signals()
    order = read_order(Path(order_path))
    folder = RunFolder(Path(order.folder))
    own = folder.node(order.node_rank)
    said = report(order.run_id, own, order.doorbell, order.attempt)
    lock = _lock(own, _LOOKS)
    ready()
    if lock is None and order.attempt > 1:
        lock = _take_over(own, order, said)
    if lock is None:
        return 0
    try:
        if said.seen() & _BEGUN:
            return 0
        if child is not None and (order.read_only or order.is_gang):  # its view is older than what is to be seen
            child.dismiss()
            child = None
        mount_read_only(order.read_only, writable=order.folder)
        _supervise_or_say_why_not(told(order, folder), folder, said, child)
        return 0
    finally:
        os.close(lock)  # last of all: a free lock means that the last word is written


def prepare_signals() -> None:
    """Before anybody can know our pid, so that no SIGTERM meets the default of dying."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the person who watches, not for the run
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _take_over(folder: RunFolder, order: WorkOrder, report: Report) -> Optional[int]:
    """From an agent of an earlier attempt, which was cut off from the others and does not know yet that it is over."""
    lock = _lock(folder, int(_LEAVING_S / _LOOK_S))
    if lock is not None or report.seen():
        return lock
    with suppress(OSError, ValueError):
        holder = int(folder.agent_lock.read_bytes())
        # a number that another machine wrote there may be anybody's here
        if any(_is_open(Path(entry.path), folder.agent_lock) for entry in os.scandir(f"/proc/{holder}/fd")):
            os.kill(holder, signal.SIGTERM)
    return _lock(folder, int((order.grace_s + _OTHERS_S) / _LOOK_S))


def _is_open(descriptor: Path, path: Path) -> bool:
    try:
        return descriptor.samefile(path)
    except OSError:
        return False


def _lock(folder: RunFolder, looks: int) -> Optional[int]:
    """None: another agent holds it."""
    lock = os.open(folder.agent_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(looks):  # a yard that looks whether it is held holds it for a moment itself
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_S)
            continue
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock
    os.close(lock)
    return None


def _supervise_or_say_why_not(
    order: WorkOrder, folder: RunFolder, report: Report, child: Optional[Child] = None
) -> None:
    try:
        if order.is_gang:
            from runyard.agent.supervise.node_group import hold_node  # a cold start of one process goes without it

            hold_node(order, folder, report)
        else:
            supervise(order, folder, report, child)
    except Exception as error:  # the edge: an agent that ends without a word leaves a riddle
        with open(folder.node(order.node_rank).agent_log, "a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        if order.node_rank == 0 and "script_started" not in report.seen():
            report.launch_failed(End(EndReason.LAUNCH_FAILED, f"the agent failed: {type(error).__name__}: {error}"))
        raise
