"""The agent of one run on one node. Starting it twice is harmless."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard.agent.event_log import EventLog
from runyard.agent.live_folder import LiveRunFolder
from runyard.agent.process.spawn import StandbyProcess
from runyard.agent.retry import add_attempt_variables
from runyard.agent.supervise.single_process import WATCHED_SIGNALS, supervise_process
from runyard.launch.order import WorkOrder, read_order
from runyard.launch.private_variables import add_private_variables, missing_secrets
from runyard.lifecycle.state import End, EndReason
from runyard.posix import file_lock, procfs
from runyard.posix.namespaces import mount_read_only
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder

_START_EVENTS = {"script_started", "script_ended", "launch_failed", "node_started"}
_PROBE_S = 0.04  # a yard that checks whether the lock is held holds it for a moment itself
_EXIT_S = 2.0
_TERMINATE_S = 15.0  # in addition to the grace period of the processes


def main(
    order_path: str,
    on_ready: Callable[[], None] = lambda: None,
    event_log_class: type[EventLog] = EventLog,
    standby: Optional[StandbyProcess] = None,
    private: Optional[Mapping[str, str]] = None,
) -> int:
    """Supervise the run until it ends. A second agent finds the lock held, or the script started, and returns.

    Args:
        order_path: The work order.
        on_ready: Called once the run has an agent.
        event_log_class: The class that records events.
        standby: A process that was forked ahead to execute the script.
        private: Variables of the processes that are not in the work order.
    """
    block_signals()
    order = add_private_variables(read_order(Path(order_path)), private or {})
    folder = LiveRunFolder(Path(order.folder))
    node_folder = folder.node(order.node_rank)
    event_log = event_log_class(order.run_id, node_folder, order.notify_socket, order.attempt)
    event_log.hide({name: order.variables[name] for name in order.secret_variables if name in order.variables})
    lock = file_lock.acquire(node_folder.agent_lock, timeout_s=_PROBE_S)
    on_ready()
    if lock is None and order.attempt > 1:
        lock = _take_over(node_folder, order, event_log)
    if lock is None:
        return 0
    try:
        if event_log.event_names() & _START_EVENTS:
            return 0
        missing = missing_secrets(order)
        if missing:
            text = f"secret variables did not reach the agent: {', '.join(missing)}"
            event_log.launch_failed(End(EndReason.LAUNCH_FAILED, text, processes_left=0))
            return 0
        if standby is not None and (order.read_only or order.is_gang):  # forked before the mounts were changed
            standby.discard()
            standby = None
        mount_read_only(order.read_only, writable=order.folder)
        _supervise(add_attempt_variables(order, folder), folder, event_log, standby)
        return 0
    finally:
        os.close(lock)  # after everything else: a free lock means that the last event is written


def block_signals() -> None:
    """To be called before any process knows the agent's pid: SIGTERM must not kill it by default."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client that watches the run
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _take_over(folder: RunFolder, order: WorkOrder, event_log: EventLog) -> Optional[int]:
    """Get the lock from the agent of an earlier attempt, which was cut off and does not know that it has ended."""
    lock = file_lock.acquire(folder.agent_lock, timeout_s=_EXIT_S)
    if lock is not None or event_log.event_names():
        return lock
    with suppress(OSError, ValueError):
        holder = int(read_regular(folder.agent_lock, 32))
        # the pid may have been written on another machine and belong to any process here
        if procfs.has_open(holder, folder.agent_lock):
            os.kill(holder, signal.SIGTERM)
    return file_lock.acquire(folder.agent_lock, timeout_s=order.grace_s + _TERMINATE_S)


def _supervise(order: WorkOrder, folder: RunFolder, event_log: EventLog, standby: Optional[StandbyProcess]) -> None:
    try:
        if order.is_gang:
            from runyard.agent.supervise.node_group import supervise_node  # not needed for a single process

            supervise_node(order, folder, event_log)
        else:
            supervise_process(order, folder, event_log, standby)
    except Exception as error:  # an agent must not end without leaving a reason
        with open(folder.node(order.node_rank).agent_log, "a", encoding="utf-8") as log:
            log.write(event_log.redact(traceback.format_exc()))
        if order.node_rank == 0 and "script_started" not in event_log.event_names():
            event_log.launch_failed(End(EndReason.LAUNCH_FAILED, f"the agent failed: {type(error).__name__}: {error}"))
        raise
