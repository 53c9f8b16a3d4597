"""Holding the script of one run from its start to its end: wait, bound, stop, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Optional

from runyard import clock
from runyard.agent.diagnosis.exit_reason import Stop, verdict
from runyard.agent.diagnosis.log_tail import LastWords, last_words
from runyard.agent.diagnosis.stall import Standstill, look_every_s
from runyard.agent.diagnosis.system_metrics import Sampler
from runyard.agent.event_log import Report
from runyard.agent.process.memory import memory_in_use_gb, oom_kills
from runyard.agent.process.process_tree import find, stop_everything
from runyard.agent.process.spawn import CannotStart, Child, ChildGone, start
from runyard.agent.rendezvous.messaging import Alone
from runyard.agent.rendezvous.peer_state import Others
from runyard.agent.retry import announce
from runyard.agent.supervise.rank_group import Team
from runyard.launch.argv import expand
from runyard.launch.order import WorkOrder
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import End, EndReason
from runyard.posix.prctl import become_subreaper
from runyard.spec.folder import RunFolder

# blocked in the agent and waited for: no handler, no race; SIGIO: somebody rang an agent's bell
WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGIO})

_MEMORY_LOOK_S = 1.0
_FIRST_LINE_S = 0.012  # the start of an interpreter
_LEFTOVER_GRACE_S = 2.0  # for what a script left running behind itself


def supervise(order: WorkOrder, folder: RunFolder, report: Report, child: Optional[Child] = None) -> None:
    """Returns when the run has ended and that is written down. ``WATCHED`` must be blocked by the caller; a ``child``
    that was forked ahead becomes the script."""
    asked = asked_to_stop(folder)
    if asked is not None:  # before there was anything to stop
        report.script_ended(End(asked.reason, asked.message, processes_left=0))
        return
    holding = _Holding(order, folder, report, become_subreaper())
    try:
        holding.begin(child)
    except (CannotStart, OSError) as error:
        report.launch_failed(End(EndReason.LAUNCH_FAILED, str(error), processes_left=0))
        return
    report.script_started(holding.pid)
    # not at once: until its first line, the script needs the processor more than those who hear of it
    if signal.sigtimedwait({signal.SIGCHLD}, _FIRST_LINE_S) is None:
        report.tell_of_start()
    report.script_ended(holding.to_the_end())


@dataclass
class _Holding:
    order: WorkOrder
    folder: RunFolder
    report: Report
    is_subreaper: bool
    pid: int = 0
    tag: str = ""
    exit_code: Optional[int] = None
    has_children: bool = True
    stop_command: Optional[int] = None  # its pid while it runs
    standstill: Optional[Standstill] = None

    def begin(self, child: Optional[Child]) -> None:
        variables = dict(self.order.variables)
        self.tag = variables.setdefault(PROCESS_TAG, process_tag(self.order.run_id, self.folder))
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        self._oom_kills = oom_kills()
        argv = (*self.order.argv[:1], *expand(self.order.argv[1:], variables))
        self.log = str(self.folder.driver_log())
        announce(self.order, self.folder.driver_log())
        self.pid = self._script(child, argv, variables)
        self.variables = variables
        self.sampler = Sampler(self.folder, self._node(), 0, variables.get("CUDA_VISIBLE_DEVICES"))

    def _script(self, child: Optional[Child], argv: Sequence[str], variables: Mapping[str, str]) -> int:
        cwd = str(self.folder.work)
        if child is not None:
            with suppress(ChildGone):  # it may have waited for hours, and somebody met it
                child.become(argv, variables, cwd=cwd, log=self.log)
                return child.pid
        return start(argv, variables, cwd=cwd, log=self.log)

    def to_the_end(self) -> End:
        stop = self._wait()
        if stop is not None:
            self._run_stop_command()
        if self.order.stop_argv:
            self._let_the_engine_tidy_up()
        if stop is None:
            left = self._stop_processes(_LEFTOVER_GRACE_S)
        else:
            # one that eats memory is not given the time to take the machine along
            hurry = stop.reason is EndReason.OUT_OF_MEMORY
            left = self._stop_processes(min(self.order.grace_s, _LEFTOVER_GRACE_S) if hurry else self.order.grace_s)
        exit_code = self.exit_code if self.exit_code is not None else -int(signal.SIGKILL)
        words = last_words(self.log) if exit_code != 0 or stop is not None else LastWords()
        return verdict(exit_code, words, stop=stop, oom_killed=oom_kills() > self._oom_kills, processes_left=left)

    def _wait(self) -> Optional[Stop]:
        """Until the script ends by itself (None), or there is a reason to stop it. Sleeps in the kernel."""
        limit_s = self.order.max_run_duration_seconds
        deadline = clock.monotonic() + limit_s if limit_s else None
        while True:
            if self._reap() is not None:
                return None
            if deadline is not None and clock.monotonic() >= deadline:
                limit = f"{clock.duration_text(limit_s or 0)} (max_run_duration_seconds={limit_s})"
                return Stop(EndReason.TIMED_OUT, f"ran longer than its limit of {limit}")
            too_much = self._too_much_memory()
            if too_much is not None:
                return too_much
            stands_still = self._stands_still()
            if stands_still is not None:
                return stands_still
            self.sampler.look()
            if next_signal(self._patience(deadline)) == signal.SIGTERM:
                if self._reap() is not None:  # it was through before it could be stopped
                    return None
                return asked_to_stop(self.folder) or Stop(EndReason.CANCELED, "canceled")

    def _node(self) -> str:
        return self.order.nodes[self.order.node_rank].name if self.order.nodes else "local"

    def _patience(self, deadline: Optional[float]) -> float:
        waits = [self.sampler.patience_s]
        if deadline is not None:
            waits.append(max(deadline - clock.monotonic(), 0.0))
        if self.order.memory_limit_gb > 0:
            waits.append(_MEMORY_LOOK_S)
        if self.order.stall_after_s:
            waits.append(look_every_s(self.order.stall_after_s))
        return min(waits)

    def _too_much_memory(self) -> Optional[Stop]:
        limit = self.order.memory_limit_gb
        if limit <= 0:
            return None
        used = memory_in_use_gb(find(self.tag, os.getpid(), everywhere=not self.is_subreaper), limit)
        if used <= limit:
            return None
        message = f"used {used:.2g} GB of the {limit:g} GB asked for (resources.memory_gb)"
        return Stop(EndReason.OUT_OF_MEMORY, message)

    def _stands_still(self) -> Optional[Stop]:
        if not self.order.stall_after_s:
            return None
        if self.standstill is None:
            order = replace(self.order, variables=self.variables)
            team = Team([RankPlan(0, "rank", 0, 0, 0)], self.folder)
            team.pids[0] = self.pid
            self.standstill = Standstill(order, self.folder, team, self.report, Others(), Alone())
        end = self.standstill.look()
        return Stop(end.reason, end.message) if end is not None else None

    def _run_stop_command(self) -> None:
        if not self.order.stop_argv:
            return
        try:
            self.stop_command = start(self.order.stop_argv, self.variables, cwd=str(self.folder.root), log=os.devnull)
        except CannotStart:  # then the signals have to do
            return
        deadline = clock.monotonic() + self.order.grace_s + _LEFTOVER_GRACE_S  # it has a grace period of its own
        while self.stop_command is not None and clock.monotonic() < deadline:
            next_signal(deadline - clock.monotonic())
            self._reap()

    def _let_the_engine_tidy_up(self) -> None:
        """A container engine removes its container after the script's end; stopped halfway, it would leave it there."""
        deadline = clock.monotonic() + min(self.order.grace_s, _LEFTOVER_GRACE_S)
        self._reap()
        while self.has_children and clock.monotonic() < deadline:
            next_signal(deadline - clock.monotonic())
            self._reap()

    def _stop_processes(self, grace_s: float) -> int:
        self._reap()
        # Every descendant comes to a subreaper when its parent ends: no children means that nothing is left.
        if self.is_subreaper and not self.has_children:
            return 0
        left = stop_everything(self.tag, grace_s, root=os.getpid(), reap=self._reap)
        self._reap()
        return left

    def _reap(self) -> Optional[int]:
        """The script's exit code, if it has ended by now; its orphans are reaped on the way."""
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


def next_signal(timeout_s: Optional[float]) -> Optional[int]:
    if timeout_s is None:
        return signal.sigwait(WATCHED)
    found = signal.sigtimedwait(WATCHED, max(timeout_s, 0.0))
    return found.si_signo if found is not None else None


def asked_to_stop(folder: RunFolder) -> Optional[Stop]:
    try:
        asked = json.loads(folder.stop.read_bytes())
    except (OSError, ValueError):
        return None
    reason = EndReason.CANCELED
    with suppress(ValueError):
        reason = EndReason(asked.get("reason"))
    return Stop(reason, str(asked.get("message") or reason.value))
