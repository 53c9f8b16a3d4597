"""Supervises a run of one process from start to end: enforces its limits, stops it, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Optional

from runyard import clock
from runyard.agent.diagnosis.exit_reason import Stop, explain_exit
from runyard.agent.diagnosis.log_tail import LogTail, read_log_tail
from runyard.agent.diagnosis.stall import StallDetector, poll_interval_s
from runyard.agent.diagnosis.system_metrics import SystemSampler
from runyard.agent.event_log import EventLog
from runyard.agent.process.memory import memory_in_use_gb, oom_kills
from runyard.agent.process.process_tree import find_processes, stop_processes
from runyard.agent.process.spawn import SpawnError, StandbyGone, StandbyProcess, spawn
from runyard.agent.rendezvous.messaging import NoPeers
from runyard.agent.rendezvous.peer_state import PeerState
from runyard.agent.retry import log_attempt
from runyard.agent.supervise.rank_group import RankGroup
from runyard.launch.argv import expand
from runyard.launch.order import WorkOrder
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import End, EndReason
from runyard.posix.prctl import become_subreaper
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.strict_json import parse_json

# Blocked in the agent and waited for, so that there are no handlers and no races. SIGIO: a wakeup pipe or socket.
WATCHED_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGIO})

_MEMORY_POLL_S = 1.0
_MAX_STOP_BYTES = 1 << 16
_INTERPRETER_START_S = 0.012
_LEFTOVERS_GRACE_S = 2.0  # for processes that a script left running


def supervise_process(
    order: WorkOrder, folder: RunFolder, event_log: EventLog, standby: Optional[StandbyProcess] = None
) -> None:
    """Run the script and return when its end is recorded. The caller must have blocked ``WATCHED_SIGNALS``."""
    stop = read_stop_request(folder)
    if stop is not None:  # before anything was started
        event_log.script_ended(End(stop.reason, stop.message, processes_left=0))
        return
    supervisor = _Supervisor(order, folder, event_log, become_subreaper())
    try:
        supervisor.start(standby)
    except (SpawnError, OSError) as error:
        event_log.launch_failed(End(EndReason.LAUNCH_FAILED, str(error), processes_left=0))
        return
    event_log.script_started(supervisor.pid)
    # delayed: until its first line, the script needs the processor more than the yard does
    if signal.sigtimedwait({signal.SIGCHLD}, _INTERPRETER_START_S) is None:
        event_log.notify_started()
    event_log.script_ended(supervisor.wait_for_end())


@dataclass
class _Supervisor:
    order: WorkOrder
    folder: RunFolder
    event_log: EventLog
    is_subreaper: bool
    pid: int = 0
    tag: str = ""
    exit_code: Optional[int] = None
    has_children: bool = True
    stop_command: Optional[int] = None  # its pid while it runs
    stall_detector: Optional[StallDetector] = None

    def start(self, standby: Optional[StandbyProcess]) -> None:
        variables = dict(self.order.variables)
        self.tag = variables.setdefault(PROCESS_TAG, process_tag(self.order.run_id, self.folder))
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        self._oom_kills = oom_kills()
        argv = (*self.order.argv[:1], *expand(self.order.argv[1:], variables))
        log_attempt(self.order, self.folder.driver_log())
        self.pid = self._start_script(standby, argv, variables)
        self.variables = variables
        node = self.order.nodes[self.order.node_rank].name if self.order.nodes else "local"
        self.sampler = SystemSampler(self.folder, node, 0, variables.get("CUDA_VISIBLE_DEVICES"))

    def _start_script(
        self, standby: Optional[StandbyProcess], argv: Sequence[str], variables: Mapping[str, str]
    ) -> int:
        cwd, log = str(self.folder.work), str(self.folder.driver_log())
        if standby is not None:
            with suppress(StandbyGone):  # it may have waited for hours and been killed
                standby.execute(argv, variables, cwd=cwd, log=log)
                return standby.pid
        return spawn(argv, variables, cwd=cwd, log=log)

    def wait_for_end(self) -> End:
        stop = self._wait()
        if stop is not None:
            self._run_stop_command()
        if self.order.stop_argv:
            self._wait_for_container_cleanup()
        grace_s = _LEFTOVERS_GRACE_S if stop is None else self.order.grace_s
        if stop is not None and stop.reason is EndReason.OUT_OF_MEMORY:  # it might exhaust the machine's memory
            grace_s = min(grace_s, _LEFTOVERS_GRACE_S)
        remaining = self._stop_processes(grace_s)
        exit_code = self.exit_code if self.exit_code is not None else -int(signal.SIGKILL)
        tail = read_log_tail(str(self.folder.driver_log())) if exit_code != 0 or stop is not None else LogTail()
        oom_killed = oom_kills() > self._oom_kills
        return explain_exit(exit_code, tail, stop=stop, oom_killed=oom_killed, processes_left=remaining)

    def _wait(self) -> Optional[Stop]:
        """Sleep until the script ends (None), or there is a reason to stop it."""
        limit_s = self.order.max_run_duration_seconds
        deadline = clock.monotonic() + limit_s if limit_s else None
        while True:
            if self._reap() is not None:
                return None
            if deadline is not None and clock.monotonic() >= deadline:
                return Stop(EndReason.TIMED_OUT, time_limit_message(self.order))
            stop = self._check_memory() or self._check_stall()
            if stop is not None:
                return stop
            self.sampler.poll()
            if wait_for_signal(self._next_check_s(deadline)) == signal.SIGTERM:
                if self._reap() is not None:  # it ended before it could be stopped
                    return None
                return read_stop_request(self.folder) or Stop(EndReason.CANCELED, "canceled")

    def _next_check_s(self, deadline: Optional[float]) -> float:
        intervals = [self.sampler.due_in_s]
        if deadline is not None:
            intervals.append(max(deadline - clock.monotonic(), 0.0))
        if self.order.memory_limit_gb > 0:
            intervals.append(_MEMORY_POLL_S)
        if self.order.stall_after_s:
            intervals.append(poll_interval_s(self.order.stall_after_s))
        return min(intervals)

    def _check_memory(self) -> Optional[Stop]:
        limit = self.order.memory_limit_gb
        if limit <= 0:
            return None
        processes = find_processes(self.tag, os.getpid(), descendants_only=self.is_subreaper)
        used = memory_in_use_gb(processes, limit)
        if used <= limit:
            return None
        return Stop(EndReason.OUT_OF_MEMORY, f"used {used:.2g} GB of the requested {limit:g} GB (resources.memory_gb)")

    def _check_stall(self) -> Optional[Stop]:
        if not self.order.stall_after_s:
            return None
        if self.stall_detector is None:
            order = replace(self.order, variables=self.variables)
            ranks = RankGroup([RankPlan(0, "rank", 0, 0, 0)], self.folder)
            ranks.pids[0] = self.pid
            self.stall_detector = StallDetector(order, self.folder, ranks, self.event_log, PeerState(), NoPeers())
        end = self.stall_detector.poll()
        return Stop(end.reason, end.message) if end is not None else None

    def _run_stop_command(self) -> None:
        if not self.order.stop_argv:
            return
        try:
            self.stop_command = spawn(self.order.stop_argv, self.variables, cwd=str(self.folder.root), log=os.devnull)
        except SpawnError:  # the signals must suffice
            return
        deadline = clock.monotonic() + self.order.grace_s + _LEFTOVERS_GRACE_S  # the command has a grace period, too
        while self.stop_command is not None and clock.monotonic() < deadline:
            wait_for_signal(deadline - clock.monotonic())
            self._reap()

    def _wait_for_container_cleanup(self) -> None:
        """A container engine removes its container after the script has ended; if killed earlier, it would not."""
        deadline = clock.monotonic() + min(self.order.grace_s, _LEFTOVERS_GRACE_S)
        self._reap()
        while self.has_children and clock.monotonic() < deadline:
            wait_for_signal(deadline - clock.monotonic())
            self._reap()

    def _stop_processes(self, grace_s: float) -> int:
        self._reap()
        # orphaned descendants become children of a subreaper: without children, no process remains
        if self.is_subreaper and not self.has_children:
            return 0
        remaining = stop_processes(self.tag, grace_s, root=os.getpid(), reap=self._reap)
        self._reap()
        return remaining

    def _reap(self) -> Optional[int]:
        """Reap all ended children. Returns the script's exit code, or None while it runs."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.has_children = False
                return self.exit_code
            if pid == 0:
                self.has_children = True
                return self.exit_code
            if pid == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
            elif pid == self.stop_command:
                self.stop_command = None


def wait_for_signal(timeout_s: float) -> Optional[int]:
    info = signal.sigtimedwait(WATCHED_SIGNALS, max(timeout_s, 0.0))
    return info.si_signo if info is not None else None


def read_stop_request(folder: RunFolder) -> Optional[Stop]:
    try:
        request = parse_json(read_regular(folder.stop, _MAX_STOP_BYTES), max_bytes=_MAX_STOP_BYTES)
    except (OSError, ValueError):
        return None
    if not isinstance(request, dict):  # written by the script
        return None
    reason = EndReason.CANCELED
    with suppress(ValueError):
        reason = EndReason(request.get("reason"))
    return Stop(reason, str(request.get("message") or reason.value))


def time_limit_message(order: WorkOrder) -> str:
    limit_s = order.max_run_duration_seconds or 0
    return f"exceeded its limit of {clock.duration_text(limit_s)} (max_run_duration_seconds={limit_s})"
