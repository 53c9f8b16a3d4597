"""One node's share in a run of several processes. All of them live and end together.

The agents talk through the run's folder: events, and `verdict.json`, of which the first to be written stands. Bells
only make them look sooner. The agent of the first node, the lead, has the last word about the run.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Optional

from runyard import clock
from runyard.agent.bell import Bell, ring
from runyard.agent.culprit import blame
from runyard.agent.linux import become_subreaper
from runyard.agent.meeting import Hello, Missing, meet
from runyard.agent.memory import memory_in_use_gb, oom_kills
from runyard.agent.mpi_team import MpiTeam
from runyard.agent.others import Others, is_free
from runyard.agent.ports import Ports
from runyard.agent.processes import find, stop_everything
from runyard.agent.report import Report
from runyard.agent.scratch import Scratch, clear_left
from runyard.agent.stall import Standstill
from runyard.agent.start import CannotStart
from runyard.agent.supervise import asked_to_stop, next_signal
from runyard.agent.team import RankEnd, Team
from runyard.launch.order import WorkOrder
from runyard.launch.plan import HERE, everybody, plan, ports_needed, world_of
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Mpi

_LOOK_S = 0.2
_LOCKS_LOOK_S = 0.5
_SHORT_GRACE_S = 1.0  # for the others after one failed: what they wait for will not come
_OTHERS_S = 15.0  # beyond the grace that they may take
_POLITE = (EndReason.CANCELED, EndReason.TIMED_OUT, EndReason.MARKED_FAILED)


def hold_node(order: WorkOrder, folder: RunFolder, report: Report) -> None:
    """Returns when this node has nothing left of the run; on the first node, when the run has ended and is told."""
    member = _Member(order, folder, report)
    try:
        member.take_part()
    finally:
        member.clear()


class _Member:
    def __init__(self, order: WorkOrder, folder: RunFolder, report: Report) -> None:
        self.folder, self.report = folder, report
        variables = {**order.variables, "RUNYARD_NODE_RANK": str(order.node_rank)}
        self.tag = variables.setdefault(PROCESS_TAG, process_tag(order.run_id, folder))
        self.order = replace(order, variables=variables)
        self.nodes = order.nodes or HERE
        self.me = order.node_rank
        self.is_lead = order.node_rank == 0
        self.is_subreaper = become_subreaper()
        self.scratch = Scratch(self.tag, self.me)
        self.bell = Bell(self.scratch.folder)
        self.ports = Ports(ports_needed(order.launch, len(self.nodes), self.me))
        self.bells = [self.bell.path]
        self.team: Team = Team([], folder)
        self.others = Others(folder, [n for n in range(len(self.nodes)) if n != self.me] if self.is_lead else [])
        self.ends: list[dict[str, object]] = []
        self.count, self.deciding = 0, set[int]()
        self.is_told = False  # that the script has started
        self._oom_kills = oom_kills()
        self._locks_at = 0.0
        limit_s = order.max_run_duration_seconds
        self._deadline = clock.monotonic() + limit_s if limit_s and self.is_lead else None

    def take_part(self) -> None:
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        self.report.note("node_started", node=self.nodes[self.me].name)
        try:
            self._begin()
            self._watch()
        except (CannotStart, Missing, OSError) as error:
            where = f"{self.nodes[self.me].name}: " if len(self.nodes) > 1 else ""
            self._post(End(EndReason.LAUNCH_FAILED, f"{where}{error}", node=self.nodes[self.me].name))
        left = self._stop_processes()
        self.report.note("node_ended", node=self.nodes[self.me].name, processes_left=left)
        ring(self.bells[0])
        if self.is_lead:
            self._conclude(left)
        elif is_free(self.folder):
            Scratch(self.tag, 0).clear()  # the lead was killed and cannot

    def clear(self) -> None:
        self.ports.close()
        self.bell.close()
        self.scratch.clear()

    def _begin(self) -> None:
        hello = Hello(tuple(self.ports.numbers), self.bell.path)
        names = [node.name for node in self.nodes]
        hellos = meet(self.folder, names, self.me, hello, pause=self._pause)
        if hellos is None:
            return
        self.bells = [one.bell for one in hellos]
        world = world_of(self.order, [one.ports for one in hellos])
        everyone = everybody(self.order.launch, world)
        self.count = len(everyone)
        self.deciding = {one.rank for one in everyone if one.decides}
        ranks = plan(self.order.launch, world, self.me, self.order.argv, self.order.variables)
        if isinstance(self.order.launch, Mpi):
            self.team = MpiTeam(ranks, self.folder, self.order, world, hellos, self.scratch)
        else:
            self.team = Team(ranks, self.folder)
        self.standstill = Standstill(self.order, self.folder, self.team, self.report, self.others, self.bells)
        self.team.begin()

    def _pause(self, seconds: float) -> bool:
        """False when the run is to end before it began."""
        if next_signal(seconds) == signal.SIGTERM:
            self._post(_canceled(self.folder))
        self._look_for_reasons_to_stop()
        return self._verdict() is None

    def _watch(self) -> None:
        """Until there is a verdict, or nothing of this node's share is left to wait for."""
        while self._verdict() is None:
            self._reap()
            self.team.heard(self.bell.hear())
            self.team.look()
            self._look_for_reasons_to_stop()
            self._tell_news()
            if self.is_lead:
                self._look_at_others()
            elif self.team.is_over:
                return
            if self._verdict() is None and next_signal(_LOOK_S) == signal.SIGTERM:
                self._reap()
                self._post(_canceled(self.folder))

    def _tell_news(self, *, is_last: bool = False) -> None:
        if self.is_lead and not self.is_told and self.team.has_begun:
            self.is_told = True
            self.report.script_started(next(iter(self.team.pids.values()), os.getpid()))
        for end in self.team.news(is_last=is_last):
            facts = self._facts(end)
            self.ends.append(facts)
            self.report.note("rank_ended", **facts)
            if end.exit_code != 0:
                self._post(End(EndReason.SCRIPT_FAILED, rank=end.plan.rank, node=self.nodes[self.me].name), end.at)
            elif not self.is_lead:
                ring(self.bells[0])

    def _facts(self, end: RankEnd) -> dict[str, object]:
        return {
            "rank": end.plan.rank,
            "title": end.plan.title,
            "decides": end.plan.decides,
            "node": self.nodes[self.me].name,
            "exit_code": end.exit_code,
            "at": end.at,
            "log": end.plan.log_suffix,
            "oom": oom_kills() > self._oom_kills,
        }

    def _look_for_reasons_to_stop(self) -> None:
        asked = asked_to_stop(self.folder)
        trouble = self.team.trouble
        if asked is not None:
            self._post(End(asked.reason, asked.message))
        elif trouble is not None:
            self._post(replace(trouble, node=self.nodes[self.me].name))
        elif self._deadline is not None and clock.monotonic() >= self._deadline:
            limit_s = self.order.max_run_duration_seconds or 0
            limit = f"{clock.duration_text(limit_s)} (max_run_duration_seconds={limit_s})"
            self._post(End(EndReason.TIMED_OUT, f"ran longer than its limit of {limit}"))
        elif self.order.memory_limit_gb > 0 and self.team.pids:
            self._look_at_memory()
        if self.team.pids:
            stalled = self.standstill.look()
            if stalled is not None:
                self._post(stalled)
        if not self.is_lead and self._is_time_for_locks() and is_free(self.folder):
            self._post(End(EndReason.NODE_LOST, f"the agent of {self.nodes[0].name}, which led the run, is gone"))

    def _look_at_memory(self) -> None:
        limit = self.order.memory_limit_gb
        used = memory_in_use_gb(find(self.tag, os.getpid(), everywhere=False), limit)
        if used > limit:
            name = self.nodes[self.me].name
            message = f"{name} used {used:.2g} GB of the {limit:g} GB asked for (resources.memory_gb)"
            self._post(End(EndReason.OUT_OF_MEMORY, message, node=name))

    def _look_at_others(self) -> None:
        self.others.look()
        if self._is_time_for_locks():
            for node_rank in self.others.lost():
                name = self.nodes[node_rank].name
                self._post(
                    End(EndReason.NODE_LOST, f"{name}: its agent is gone, and with it the node's processes", node=name)
                )
        through = {end["rank"] for end in (*self.ends, *self.others.ends) if end["decides"] and end["exit_code"] == 0}
        if self.deciding and through >= self.deciding and self.team.may_end:
            self._post(End(EndReason.SUCCEEDED, exit_code=0))

    def _is_time_for_locks(self) -> bool:
        if len(self.nodes) == 1 or clock.monotonic() < self._locks_at:
            return False
        self._locks_at = clock.monotonic() + _LOCKS_LOOK_S
        return True

    def _post(self, end: End, at: Optional[float] = None) -> None:
        """The first verdict stands, whoever writes it."""
        draft = self.folder.root / f"verdict.{self.me}.draft"
        draft.write_text(json.dumps({"end": to_json(end), "at": at or clock.now()}), encoding="utf-8")
        with suppress(FileExistsError):
            os.link(draft, self.folder.verdict)
        draft.unlink()
        for node_rank, bell in enumerate(self.bells):
            if node_rank != self.me:
                ring(bell)

    def _verdict(self) -> Optional[End]:
        try:
            said = json.loads(self.folder.verdict.read_bytes())
        except FileNotFoundError:
            return None
        self._judged_at: float = said["at"]
        return from_json(End, said["end"])

    def _stop_processes(self) -> int:
        end = self._verdict()
        polite = end is not None and end.reason in _POLITE
        grace_s = self.order.grace_s if polite else min(self.order.grace_s, _SHORT_GRACE_S)
        if not self._reap() and self.is_subreaper:  # every orphan would have come to us: nothing is left
            return self._after_the_last(0)
        mark = f"RUNYARD_NODE_RANK={self.me}"
        left = stop_everything(
            self.tag, grace_s, root=os.getpid(), reap=self._reap, mark=mark, last=self.team.launchers
        )
        return self._after_the_last(left)

    def _after_the_last(self, left: int) -> int:
        self._reap()
        self.team.heard(self.bell.hear())
        self._tell_news(is_last=True)
        return left

    def _conclude(self, left: int) -> None:
        """The lead's last word: about the whole run, after every node had its own."""
        give_up = clock.monotonic() + self.order.grace_s + _OTHERS_S
        self.others.look()
        while self.others.running and clock.monotonic() < give_up:
            lost = self.others.lost()
            if len(lost) == len(self.others.running):
                break
            next_signal(0.05)
            self.bell.hear()
            self.others.look()
        verdict = self._verdict() or End(EndReason.AGENT_LOST, "ended without a word")
        if len(self.nodes) > 1:  # an agent that was killed may have left something on this machine
            left += stop_everything(self.tag, _SHORT_GRACE_S, root=os.getpid(), reap=self._reap)
        left += sum(self.others.left.values())
        if not left:
            clear_left(self.tag)
        ends = [*self.ends, *self.others.ends]
        if verdict.reason is EndReason.SCRIPT_FAILED and verdict.rank is not None:
            verdict = blame(ends, self._judged_at, self.count, self.folder)
        verdict = replace(verdict, processes_left=left)
        if verdict.reason is EndReason.SUCCEEDED and self.team.afterthought:
            self.report.note("afterthought", warning=self.team.afterthought)
        if verdict.reason is EndReason.LAUNCH_FAILED and not self.is_told:
            self.report.launch_failed(verdict)
        else:
            self.report.script_ended(verdict)

    def _reap(self) -> bool:
        """Whether there are children left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.team.reaped(pid, os.waitstatus_to_exitcode(status))


def _canceled(folder: RunFolder) -> End:
    asked = asked_to_stop(folder)
    return End(asked.reason, asked.message) if asked else End(EndReason.CANCELED, "canceled")
