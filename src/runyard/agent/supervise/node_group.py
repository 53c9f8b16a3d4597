"""Supervises one node's ranks of a distributed run. All ranks of the run start and end together.

The agents communicate over TCP with the lead, the agent of the first node, which may be on another machine. The first
end that the lead learns of is the end of the run; the lead broadcasts it, and records it after all nodes have ended.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, replace
from typing import Any, Optional

from runyard import clock
from runyard.agent.diagnosis.log_tail import read_log_tail
from runyard.agent.diagnosis.root_cause import find_root_cause
from runyard.agent.diagnosis.stall import StallDetector
from runyard.agent.diagnosis.system_metrics import SystemSampler
from runyard.agent.event_log import EventLog
from runyard.agent.network_interface import interface_with_address
from runyard.agent.process.memory import memory_in_use_gb, oom_kills
from runyard.agent.process.ports import ReservedPorts
from runyard.agent.process.process_tree import find_processes, stop_processes
from runyard.agent.process.scratch import Scratch, clear_leftovers
from runyard.agent.process.spawn import SpawnError
from runyard.agent.rendezvous.membership import Rendezvous, RendezvousError, open_messaging
from runyard.agent.rendezvous.messaging import Messaging, NoPeers
from runyard.agent.rendezvous.peer_state import PeerState
from runyard.agent.rendezvous.wakeup_pipe import WakeupPipe
from runyard.agent.retry import log_attempt
from runyard.agent.supervise.mpi_rank_group import MpiRankGroup
from runyard.agent.supervise.rank_group import RankEnd, RankGroup
from runyard.agent.supervise.single_process import read_stop_request, time_limit_message, wait_for_signal
from runyard.launch.order import WorkOrder
from runyard.launch.plan import LOCAL_NODES, all_ranks, make_world, plan, ports_needed
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.posix import file_lock
from runyard.posix.prctl import become_subreaper
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Mpi

_POLL_S = 0.2
_SHORT_GRACE_S = 1.0  # after a failure: the other ranks wait for something that will not happen
_PEERS_TIMEOUT_S = 15.0  # in addition to their grace period
_FULL_GRACE_REASONS = (EndReason.CANCELED, EndReason.TIMED_OUT, EndReason.MARKED_FAILED, EndReason.PREEMPTED)
_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def supervise_node(order: WorkOrder, folder: RunFolder, event_log: EventLog) -> None:
    """Return when this node's part has ended; on the lead, when the end of the run is recorded."""
    supervisor = _NodeSupervisor(order, folder, event_log)
    try:
        supervisor.run()
    finally:
        supervisor.close()


class _NodeSupervisor:
    def __init__(self, order: WorkOrder, folder: RunFolder, event_log: EventLog) -> None:
        self.folder, self.event_log = folder, event_log
        self.nodes = order.nodes or LOCAL_NODES
        self.node_rank = order.node_rank
        self.name = self.nodes[self.node_rank].name
        self.is_lead = order.node_rank == 0
        interface = interface_with_address(self.nodes[self.node_rank].address) if len(self.nodes) > 1 else ""
        # otherwise gloo and NCCL use the interface of the host name, which other nodes may not reach
        variables = dict.fromkeys(_INTERFACE_VARIABLES, interface) if interface else {}
        variables.update(order.variables, RUNYARD_NODE_RANK=str(order.node_rank))
        self.tag = variables.setdefault(PROCESS_TAG, process_tag(order.run_id, folder))
        self.order = replace(order, variables=variables)
        self.interface = interface
        self.is_subreaper = become_subreaper()
        self.scratch = Scratch(self.tag, self.node_rank)
        self.wakeup_pipe = WakeupPipe(self.scratch.folder)
        self.ports = ReservedPorts(ports_needed(order.launch, len(self.nodes), self.node_rank))
        self.messaging: Messaging = NoPeers()
        self.rendezvous = Rendezvous(self.order, self.messaging, [node.name for node in self.nodes])
        self.peers = PeerState()
        self._set_ranks(RankGroup([], folder))
        self.daemon_requests: list[tuple[str, str]] = []  # from the lead's launcher, possibly before we have started
        self.rank_ends: list[dict[str, Any]] = []
        self.rank_count, self.deciding_ranks = 0, set[int]()
        self.end: Optional[End] = None
        self.decided_at = 0.0
        self.has_started = False
        self.start_recorded = False
        self._oom_kills = oom_kills()
        self._sampler = SystemSampler(folder, self.name, self.node_rank, order.variables.get("CUDA_VISIBLE_DEVICES"))
        limit_s = order.max_run_duration_seconds
        self._deadline = clock.monotonic() + limit_s if limit_s and self.is_lead else None

    def run(self) -> None:
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        self.event_log.record("node_started", node=self.name)
        try:
            self.messaging = open_messaging(self.order, self.folder)
            self._start()
            self._watch()
        except (SpawnError, RendezvousError, OSError) as error:
            prefix = f"{self.name}: " if len(self.nodes) > 1 else ""
            self._decide_end(End(EndReason.LAUNCH_FAILED, f"{prefix}{error}", node=self.name))
        remaining = self._stop_processes()
        self.event_log.record("node_ended", node=self.name, processes_left=remaining)
        if self.is_lead:
            self._finish_run(remaining)
        else:
            self._finish_node(remaining)

    def close(self) -> None:
        self.messaging.close()
        self.ports.close()
        self.wakeup_pipe.close()
        self.scratch.clear()

    def _start(self) -> None:
        self.rendezvous = Rendezvous(self.order, self.messaging, [node.name for node in self.nodes])
        self.rendezvous.register(self.nodes[self.node_rank], tuple(self.ports.numbers))
        registrations = self.rendezvous.wait(self._pause)
        if registrations is None:
            return
        world = make_world(
            replace(self.order, nodes=tuple(registration.node for registration in registrations)),
            [registration.ports for registration in registrations],
            hosts=tuple(registration.host for registration in registrations),
        )
        run_ranks = all_ranks(self.order.launch, world)
        self.rank_count = len(run_ranks)
        self.deciding_ranks = {rank.rank for rank in run_ranks if rank.decides}
        ranks = plan(self.order.launch, world, self.node_rank, self.order.argv, self.order.variables)
        for rank in ranks:
            log_attempt(self.order, self.folder.driver_log(rank.log_suffix))
        if isinstance(self.order.launch, Mpi):
            pipe, messaging, interface = self.wakeup_pipe.path, self.messaging, self.interface
            self._set_ranks(
                MpiRankGroup(ranks, self.folder, self.order, world, self.scratch, pipe, messaging, interface)
            )
        else:
            self._set_ranks(RankGroup(ranks, self.folder))
        self.ranks.start()
        self.has_started = True

    def _set_ranks(self, ranks: RankGroup) -> None:
        self.ranks = ranks
        self.stall_detector = StallDetector(self.order, self.folder, ranks, self.event_log, self.peers, self.messaging)

    def _pause(self, seconds: float) -> bool:
        """Wait during the rendezvous. False if the run is to end before its start."""
        self._receive()
        if self.end is None and self.rendezvous.registrations is None and wait_for_signal(seconds) == signal.SIGTERM:
            self._decide_end(_cancel_end(self.folder))
        self._check_stop_conditions()
        return self.end is None

    def _watch(self) -> None:
        """Return when the end is decided, or when this node's ranks have ended."""
        while self.end is None:
            self._reap()
            self.ranks.handle_wakeup(self.wakeup_pipe.read_lines())
            self._receive()
            self.ranks.poll()
            self._check_stop_conditions()
            self._report_progress()
            self._sampler.poll()
            if self.is_lead:
                self._check_success()
            elif self.ranks.has_ended:
                return
            if self.end is None and wait_for_signal(_POLL_S) == signal.SIGTERM:
                self._reap()
                self._decide_end(_cancel_end(self.folder))

    def _receive(self) -> None:
        for node_rank, message in self.messaging.receive():
            self.rendezvous.handle(node_rank, message)
            if self.is_lead:
                self._handle_member(node_rank, message)
            elif message["type"] == "end":
                self.end, self.decided_at = from_json(End, message["end"]), message["at"]
            elif message["type"] == "dump_stacks":
                self.stall_detector.dump_stacks(message["number"])
            elif message["type"] == "run_daemon" and self.end is None:
                self.daemon_requests.append((message["command"], message["prefix"]))
        for node_rank, problem in self.messaging.take_problems():
            name = self.nodes[node_rank].name
            self.event_log.record("warning", warning=f"the connection to the agent of {name} was ended: {problem}")
        while self.has_started and self.daemon_requests and self.end is None:
            self.ranks.run_daemon(*self.daemon_requests.pop(0))

    def _handle_member(self, node_rank: int, message: dict[str, Any]) -> None:
        self.peers.handle(node_rank, message)
        if message["type"] == "rank_ended":
            self.event_log.record("rank_ended", **message["end"])
            self._check_rank_end(message["end"])
        elif message["type"] == "node_ended":
            name, remaining = self.nodes[node_rank].name, message["processes_left"]
            self.event_log.record("node_ended", node=name, processes_left=remaining)
        elif message["type"] == "end":
            self._decide_end(from_json(End, message["end"]))

    def _report_progress(self, *, is_last: bool = False) -> None:
        if self.is_lead and not self.start_recorded and self.ranks.has_started:
            self.start_recorded = True
            self.event_log.script_started(next(iter(self.ranks.pids.values()), os.getpid()))
            self.event_log.notify_started()
        for end in self.ranks.take_new_ends(is_last=is_last):
            facts = self._rank_end_facts(end)
            self.rank_ends.append(facts)
            self.event_log.record("rank_ended", **facts)
            if not self.is_lead:
                self.messaging.send("rank_ended", end=self.event_log.redact(facts))  # frames are not encrypted
            self._check_rank_end(facts)

    def _check_rank_end(self, facts: dict[str, Any]) -> None:
        if facts["exit_code"] != 0 and self.end is None:
            end = End(EndReason.SCRIPT_FAILED, rank=facts["rank"], node=facts["node"])
            self._decide_end(end, facts["at"], lead_knows=not self.is_lead)

    def _rank_end_facts(self, end: RankEnd) -> dict[str, Any]:
        log = self.folder.driver_log(end.plan.log_suffix)
        return {
            "rank": end.plan.rank,
            "title": end.plan.title,
            "decides": end.plan.decides,
            "node": self.name,
            "exit_code": end.exit_code,
            "at": end.at,
            "oom": oom_kills() > self._oom_kills,
            # included because the log may be on another machine than the lead
            "tail": asdict(read_log_tail(str(log))) if end.exit_code else None,
            "wrote_at": log.stat().st_mtime if log.exists() else end.at,
        }

    def _check_stop_conditions(self) -> None:
        stop, failure = read_stop_request(self.folder), self.ranks.failure
        if stop is not None:
            self._decide_end(End(stop.reason, stop.message))
        elif failure is not None:
            self._decide_end(replace(failure, node=self.name))
        elif self._deadline is not None and clock.monotonic() >= self._deadline:
            self._decide_end(End(EndReason.TIMED_OUT, time_limit_message(self.order)))
        elif self.order.memory_limit_gb > 0 and self.ranks.pids:
            self._check_memory()
        if self.ranks.pids:
            stall_end = self.stall_detector.poll()
            if stall_end is not None:
                self._decide_end(stall_end)
        for node_rank, evidence in self.messaging.lost_nodes().items():
            if node_rank not in self.peers.processes_left:
                name = self.nodes[node_rank].name
                title = name if node_rank else f"{name}, the lead"
                end = End(EndReason.NODE_LOST, f"{title}: {evidence}", node=name)
                self._decide_end(end, lead_knows=not self.is_lead)

    def _check_memory(self) -> None:
        limit = self.order.memory_limit_gb
        used = memory_in_use_gb(find_processes(self.tag, os.getpid(), descendants_only=True), limit)
        if used > limit:
            message = f"{self.name} used {used:.2g} GB of the requested {limit:g} GB (resources.memory_gb)"
            self._decide_end(End(EndReason.OUT_OF_MEMORY, message, node=self.name))

    def _check_success(self) -> None:
        ends = (*self.rank_ends, *self.peers.rank_ends)
        succeeded = {end["rank"] for end in ends if end["decides"] and end["exit_code"] == 0}
        if self.deciding_ranks and succeeded >= self.deciding_ranks and self.ranks.launcher_succeeded:
            self._decide_end(End(EndReason.SUCCEEDED, exit_code=0))

    def _decide_end(self, end: End, at: Optional[float] = None, *, lead_knows: bool = False) -> None:
        """Decide the end of the run, unless it is already decided.

        A member acts on its own decision immediately, although the lead may know of an earlier one.

        Args:
            end: The end.
            at: Time of the event that caused it; now by default.
            lead_knows: The lead already knows of it, or cannot be reached.
        """
        if self.end is not None:
            return
        self.end, self.decided_at = end, at or clock.now()
        if self.is_lead:
            self.event_log.record("end_decided", end=to_json(end), decided_at=self.decided_at)
        if not lead_knows:
            public_end = {**self.event_log.redact(to_json(end)), "reason": end.reason.value}
            self.messaging.send("end", end=public_end, at=self.decided_at)

    def _stop_processes(self) -> int:
        has_full_grace = self.end is not None and self.end.reason in _FULL_GRACE_REASONS
        grace_s = self.order.grace_s if has_full_grace else min(self.order.grace_s, _SHORT_GRACE_S)
        remaining = 0
        if self._reap() or not self.is_subreaper:  # orphans become children of a subreaper: without any, all ended
            remaining = stop_processes(
                self.tag,
                grace_s,
                root=os.getpid(),
                reap=self._reap_and_receive,
                variable=f"RUNYARD_NODE_RANK={self.node_rank}",
                launchers=self.ranks.launchers,
            )
        self._reap()
        self.ranks.handle_wakeup(self.wakeup_pipe.read_lines())
        self._report_progress(is_last=True)
        return remaining

    def _reap_and_receive(self) -> None:
        """Send heartbeats, too: a long grace period must not look like a lost node."""
        self._reap()
        self._receive()

    def _finish_node(self, remaining: int) -> None:
        """Wait until the lead has received the last message; otherwise it would consider this node lost."""
        self.messaging.send("node_ended", processes_left=remaining)
        while not (self.messaging.all_acknowledged or self.messaging.lost_nodes() or self.messaging.never_connected):
            wait_for_signal(_POLL_S)
            self.messaging.receive()
        lock = self.folder.agent_lock
        if self.messaging.lost_nodes() and lock.exists() and not file_lock.is_held(lock):
            clear_leftovers(self.tag, 0)  # the lead was killed on this machine and cannot do it

    def _finish_run(self, remaining: int) -> None:
        """Record the end of the run after all nodes have reported theirs."""
        give_up = clock.monotonic() + self.order.grace_s + _PEERS_TIMEOUT_S
        self._receive()
        while self._should_wait_for_peers(clock.monotonic() > give_up):
            wait_for_signal(0.05)
            self.wakeup_pipe.read_lines()
            self._receive()
        end = self.end or End(EndReason.AGENT_LOST, "the agent ended without reporting a result")
        if len(self.nodes) > 1:  # a killed agent of another node may have left processes on this machine
            remaining += stop_processes(self.tag, _SHORT_GRACE_S, root=os.getpid(), reap=self._reap)
        remaining += sum(self.peers.processes_left.values())
        if not remaining:
            clear_leftovers(self.tag)
        if end.reason is EndReason.SCRIPT_FAILED and end.rank is not None:
            rank_ends = [*self.rank_ends, *self.peers.rank_ends]
            end = find_root_cause(rank_ends, self.decided_at, self.rank_count) or end
        end = replace(end, processes_left=remaining)
        if end.reason is EndReason.SUCCEEDED and self.ranks.success_warning:
            self.event_log.record("warning", warning=self.ranks.success_warning)
        if end.reason is EndReason.LAUNCH_FAILED and not self.start_recorded:
            self.event_log.launch_failed(end)
        else:
            self.event_log.script_ended(end)

    def _should_wait_for_peers(self, is_late: bool) -> bool:
        """Wait for a node that is cut off until it counts as lost, but for a connected one only until ``is_late``."""
        lost = self.messaging.lost_nodes()
        awaited = [node_rank for node_rank in self.peers.running_nodes if node_rank not in lost]
        return any(not is_late or self.messaging.misses_heartbeats(node_rank) for node_rank in awaited)

    def _reap(self) -> bool:
        """Reap all ended children. Returns True if there are living ones."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.ranks.handle_exit(pid, os.waitstatus_to_exitcode(status))


def _cancel_end(folder: RunFolder) -> End:
    stop = read_stop_request(folder)
    return End(stop.reason, stop.message) if stop else End(EndReason.CANCELED, "canceled")
