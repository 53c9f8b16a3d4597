"""One node's share in a run of several processes. All of them live and end together.

The agents talk by TCP with that of the first node, the lead, which may be on another machine. The first verdict that
the lead knows of stands; it writes down what the others told, tells all of them, and has the last word about the run.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, replace
from typing import Any, Optional

from runyard import clock
from runyard.agent.diagnosis.log_tail import last_words
from runyard.agent.diagnosis.root_cause import blame
from runyard.agent.diagnosis.stall import Standstill
from runyard.agent.diagnosis.system_metrics import Sampler
from runyard.agent.event_log import Report
from runyard.agent.host_identity import interface_of
from runyard.agent.process.memory import memory_in_use_gb, oom_kills
from runyard.agent.process.ports import Ports
from runyard.agent.process.process_tree import find, stop_everything
from runyard.agent.process.scratch import Scratch, clear_left
from runyard.agent.process.spawn import CannotStart
from runyard.agent.rendezvous.client import Dial
from runyard.agent.rendezvous.membership import Meeting, Missing, line_of
from runyard.agent.rendezvous.messaging import Alone, Talk
from runyard.agent.rendezvous.peer_state import Others, is_free
from runyard.agent.rendezvous.wakeup_pipe import Bell
from runyard.agent.retry import announce
from runyard.agent.supervise.mpi_rank_group import MpiTeam
from runyard.agent.supervise.rank_group import RankEnd, Team
from runyard.agent.supervise.single_process import asked_to_stop, next_signal
from runyard.launch.order import WorkOrder
from runyard.launch.plan import HERE, everybody, plan, ports_needed, world_of
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.posix.prctl import become_subreaper
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Mpi

_LOOK_S = 0.2
_SHORT_GRACE_S = 1.0  # for the others after one failed: what they wait for will not come
_OTHERS_S = 15.0  # beyond the grace that they may take
_POLITE = (EndReason.CANCELED, EndReason.TIMED_OUT, EndReason.MARKED_FAILED, EndReason.PREEMPTED)
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


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
        self.nodes = order.nodes or HERE
        self.me = order.node_rank
        self.name = self.nodes[self.me].name
        self.is_lead = order.node_rank == 0
        interface = interface_of(self.nodes[self.me].address) if len(self.nodes) > 1 else ""
        # else gloo and NCCL take the interface that the host's own name leads to, which nobody else may reach
        variables = dict.fromkeys(_INTERFACES, interface) if interface else {}
        variables.update(order.variables, RUNYARD_NODE_RANK=str(order.node_rank))
        self.tag = variables.setdefault(PROCESS_TAG, process_tag(order.run_id, folder))
        self.order = replace(order, variables=variables)
        self.interface = interface
        self.is_subreaper = become_subreaper()
        self.scratch = Scratch(self.tag, self.me)
        self.bell = Bell(self.scratch.folder)
        self.ports = Ports(ports_needed(order.launch, len(self.nodes), self.me))
        self.talk: Talk = Alone()
        self.meeting = Meeting(self.order, self.talk, [node.name for node in self.nodes])
        self.others = Others()
        self.team: Team = Team([], folder)
        self.standstill = Standstill(self.order, folder, self.team, report, self.others, self.talk)
        self.wanted: list[tuple[str, str]] = []  # by the lead's launcher; it may be ahead of us
        self.ends: list[dict[str, Any]] = []
        self.count, self.deciding = 0, set[int]()
        self.verdict: Optional[End] = None
        self.judged_at = 0.0
        self.has_begun = False
        self.is_told = False  # that the script has started
        self._oom_kills = oom_kills()
        self._sampler = Sampler(folder, self.name, self.me, order.variables.get("CUDA_VISIBLE_DEVICES"))
        limit_s = order.max_run_duration_seconds
        self._deadline = clock.monotonic() + limit_s if limit_s and self.is_lead else None

    def take_part(self) -> None:
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        self.report.note("node_started", node=self.name)
        try:
            self.talk = line_of(self.order, self.folder)
            self._begin()
            self._watch()
        except (CannotStart, Missing, OSError) as error:
            where = f"{self.name}: " if len(self.nodes) > 1 else ""
            self._judge(End(EndReason.LAUNCH_FAILED, f"{where}{error}", node=self.name))
        left = self._stop_processes()
        self.report.note("node_ended", node=self.name, processes_left=left)
        if self.is_lead:
            self._conclude(left)
        else:
            self._take_leave(left)

    def clear(self) -> None:
        self.talk.close()
        self.ports.close()
        self.bell.close()
        self.scratch.clear()

    def _begin(self) -> None:
        self.meeting = Meeting(self.order, self.talk, [node.name for node in self.nodes])
        self.meeting.begin(self.nodes[self.me], tuple(self.ports.numbers))
        hellos = self.meeting.wait(self._pause)
        if hellos is None:
            return
        world = world_of(
            replace(self.order, nodes=tuple(one.node for one in hellos)),
            [one.ports for one in hellos],
            hosts=tuple(one.host for one in hellos),
        )
        everyone = everybody(self.order.launch, world)
        self.count = len(everyone)
        self.deciding = {one.rank for one in everyone if one.decides}
        ranks = plan(self.order.launch, world, self.me, self.order.argv, self.order.variables)
        for rank in ranks:
            announce(self.order, self.folder.driver_log(rank.log_suffix))
        if isinstance(self.order.launch, Mpi):
            self.team = MpiTeam(
                ranks, self.folder, self.order, world, self.scratch, self.bell.path, self.talk, self.interface
            )
        else:
            self.team = Team(ranks, self.folder)
        self.standstill = Standstill(self.order, self.folder, self.team, self.report, self.others, self.talk)
        self.team.begin()
        self.has_begun = True

    def _pause(self, seconds: float) -> bool:
        """False when the run is to end before it began."""
        self._hear()
        if self.verdict is None and self.meeting.world is None and next_signal(seconds) == signal.SIGTERM:
            self._judge(_canceled(self.folder))
        self._look_for_reasons_to_stop()
        return self.verdict is None

    def _watch(self) -> None:
        """Until there is a verdict, or nothing of this node's share is left to wait for."""
        while self.verdict is None:
            self._reap()
            self.team.heard(self.bell.hear())
            self._hear()
            self.team.look()
            self._look_for_reasons_to_stop()
            self._tell_news()
            self._sampler.look()
            if self.is_lead:
                self._look_at_others()
            elif self.team.is_over:
                return
            if self.verdict is None and next_signal(_LOOK_S) == signal.SIGTERM:
                self._reap()
                self._judge(_canceled(self.folder))

    def _hear(self) -> None:
        for node_rank, said in self.talk.look():
            self.meeting.heard(node_rank, said)
            if self.is_lead:
                self._hear_of(node_rank, said)
            elif said["do"] == "verdict":
                self.verdict, self.judged_at = from_json(End, said["end"]), said["at"]
            elif said["do"] == "where":
                self.standstill.answer(said["number"])
            elif said["do"] == "run" and self.verdict is None:
                self.wanted.append((said["command"], said["prefix"]))
        while self.has_begun and self.wanted and self.verdict is None:
            self.team.run(*self.wanted.pop(0))

    def _hear_of(self, node_rank: int, said: dict[str, Any]) -> None:
        self.others.hear(node_rank, said)
        if said["do"] == "rank_ended":
            self.report.note("rank_ended", **said["end"])
            self._judge_end(said["end"])
        elif said["do"] == "node_ended":
            self.report.note("node_ended", node=self.nodes[node_rank].name, processes_left=said["processes_left"])
        elif said["do"] == "verdict":
            self._judge(from_json(End, said["end"]))

    def _tell_news(self, *, is_last: bool = False) -> None:
        if self.is_lead and not self.is_told and self.team.has_begun:
            self.is_told = True
            self.report.script_started(next(iter(self.team.pids.values()), os.getpid()))
            self.report.tell_of_start()
        for end in self.team.news(is_last=is_last):
            facts = self._facts(end)
            self.ends.append(facts)
            self.report.note("rank_ended", **facts)
            if not self.is_lead:
                self.talk.say("rank_ended", end=facts)
            self._judge_end(facts)

    def _judge_end(self, facts: dict[str, Any]) -> None:
        if facts["exit_code"] != 0 and self.verdict is None:
            end = End(EndReason.SCRIPT_FAILED, rank=facts["rank"], node=facts["node"])
            self._judge(end, facts["at"], is_known=not self.is_lead)

    def _facts(self, end: RankEnd) -> dict[str, Any]:
        log = self.folder.driver_log(end.plan.log_suffix)
        return {
            "rank": end.plan.rank,
            "title": end.plan.title,
            "decides": end.plan.decides,
            "node": self.name,
            "exit_code": end.exit_code,
            "at": end.at,
            "oom": oom_kills() > self._oom_kills,
            # the log may be on another machine than the lead, who has to judge
            "words": asdict(last_words(str(log))) if end.exit_code else None,
            "wrote_at": log.stat().st_mtime if log.exists() else end.at,
        }

    def _look_for_reasons_to_stop(self) -> None:
        asked = asked_to_stop(self.folder)
        trouble = self.team.trouble
        if asked is not None:
            self._judge(End(asked.reason, asked.message))
        elif trouble is not None:
            self._judge(replace(trouble, node=self.name))
        elif self._deadline is not None and clock.monotonic() >= self._deadline:
            limit_s = self.order.max_run_duration_seconds or 0
            limit = f"{clock.duration_text(limit_s)} (max_run_duration_seconds={limit_s})"
            self._judge(End(EndReason.TIMED_OUT, f"ran longer than its limit of {limit}"))
        elif self.order.memory_limit_gb > 0 and self.team.pids:
            self._look_at_memory()
        if self.team.pids:
            stalled = self.standstill.look()
            if stalled is not None:
                self._judge(stalled)
        for node_rank, how in self.talk.lost().items():
            if node_rank not in self.others.left:
                name = self.nodes[node_rank].name
                whose = name if node_rank else f"{name}, which led the run"
                end = End(EndReason.NODE_LOST, f"{whose}: {how}", node=name)
                self._judge(end, is_known=not self.is_lead)

    def _look_at_memory(self) -> None:
        limit = self.order.memory_limit_gb
        used = memory_in_use_gb(find(self.tag, os.getpid(), everywhere=False), limit)
        if used > limit:
            message = f"{self.name} used {used:.2g} GB of the {limit:g} GB asked for (resources.memory_gb)"
            self._judge(End(EndReason.OUT_OF_MEMORY, message, node=self.name))

    def _look_at_others(self) -> None:
        through = {end["rank"] for end in (*self.ends, *self.others.ends) if end["decides"] and end["exit_code"] == 0}
        if self.deciding and through >= self.deciding and self.team.may_end:
            self._judge(End(EndReason.SUCCEEDED, exit_code=0))

    def _judge(self, end: End, at: Optional[float] = None, *, is_known: bool = False) -> None:
        """The first verdict stands. A member acts upon its own at once; the lead may know of an earlier one.

        ``is_known``: the lead knows, or cannot be told.
        """
        if self.verdict is not None:
            return
        self.verdict, self.judged_at = end, at or clock.now()
        if self.is_lead:
            self.report.note("verdict", end=to_json(end), judged_at=self.judged_at)
        if not is_known:
            self.talk.say("verdict", end=to_json(end), at=self.judged_at)

    def _stop_processes(self) -> int:
        polite = self.verdict is not None and self.verdict.reason in _POLITE
        grace_s = self.order.grace_s if polite else min(self.order.grace_s, _SHORT_GRACE_S)
        if not self._reap() and self.is_subreaper:  # every orphan would have come to us: nothing is left
            return self._after_the_last(0)
        mark = f"RUNYARD_NODE_RANK={self.me}"
        left = stop_everything(
            self.tag, grace_s, root=os.getpid(), reap=self._reap_and_hear, mark=mark, last=self.team.launchers
        )
        return self._after_the_last(left)

    def _reap_and_hear(self) -> None:
        """A long grace must not look like a lost node."""
        self._reap()
        self._hear()

    def _after_the_last(self, left: int) -> int:
        self._reap()
        self.team.heard(self.bell.hear())
        self._tell_news(is_last=True)
        return left

    def _take_leave(self, left: int) -> None:
        """Whoever goes without a last word is taken for lost: it goes when the lead has heard it."""
        self.talk.say("node_ended", processes_left=left)
        while not self.talk.is_delivered and not self.talk.lost() and self._has_a_line:
            next_signal(_LOOK_S)
            self.talk.look()
        if self.talk.lost() and is_free(self.folder):
            Scratch(self.tag, 0).clear()  # the lead was killed on this machine and cannot

    @property
    def _has_a_line(self) -> bool:
        return not (isinstance(self.talk, Dial) and self.talk.is_new)

    def _conclude(self, left: int) -> None:
        """The lead's last word: about the whole run, after every node had its own."""
        give_up = clock.monotonic() + self.order.grace_s + _OTHERS_S
        self._hear()
        while self._is_worth_waiting(clock.monotonic() > give_up):
            next_signal(0.05)
            self.bell.hear()
            self._hear()
        verdict = self.verdict or End(EndReason.AGENT_LOST, "ended without a word")
        if len(self.nodes) > 1:  # an agent that was killed may have left something on this machine
            left += stop_everything(self.tag, _SHORT_GRACE_S, root=os.getpid(), reap=self._reap)
        left += sum(self.others.left.values())
        if not left:
            clear_left(self.tag)
        ends = [*self.ends, *self.others.ends]
        if verdict.reason is EndReason.SCRIPT_FAILED and verdict.rank is not None:
            verdict = blame(ends, self.judged_at, self.count)
        verdict = replace(verdict, processes_left=left)
        if verdict.reason is EndReason.SUCCEEDED and self.team.afterthought:
            self.report.note("afterthought", warning=self.team.afterthought)
        if verdict.reason is EndReason.LAUNCH_FAILED and not self.is_told:
            self.report.launch_failed(verdict)
        else:
            self.report.script_ended(verdict)

    def _is_worth_waiting(self, is_late: bool) -> bool:
        """For a last word: of a node that is only cut off until it is lost, of one that just says none not so long."""
        lost = self.talk.lost()
        awaited = [node_rank for node_rank in self.others.running if node_rank not in lost]
        return any(not is_late or self.talk.is_quiet(node_rank) for node_rank in awaited)

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
