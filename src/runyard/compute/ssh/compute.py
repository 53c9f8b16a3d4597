"""Runs on SSH hosts: the code is sent there, an agent is started there, and its files are mirrored back."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.compute.base import AgentStatus, Capacity, Handle
from runyard.compute.local.compute import LocalCompute
from runyard.compute.ssh import file_sync
from runyard.compute.ssh.data_upload import HostData
from runyard.compute.ssh.environment_build import HostEnvironments
from runyard.compute.ssh.framing import ConnectionLost
from runyard.compute.ssh.host import FollowedRun, Host
from runyard.compute.ssh.placeholders import translate
from runyard.compute.ssh.run_mirror import (
    MirroredCompute,
    RunMirror,
    require_reachable,
    unique_names,
    unreachable_text,
)
from runyard.compute.ssh.working_copy import read_working_copy, send_working_copy
from runyard.errors import ComputeTargetException, RunyardException
from runyard.launch.order import Node, WorkOrder, write_order
from runyard.lifecycle.state import End, EndReason
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_START_RETRY_S = 60.0
_STOP_RETRY_S = 24 * 3600.0
_LEFTOVERS_RETRY_S = 20.0
_CANCEL_START_S = 20.0


class SshCompute(MirroredCompute):
    def __init__(
        self, hosts: Sequence[Host], capacities: Sequence[Capacity], *, kit: Path, local: LocalCompute
    ) -> None:
        self.mirror = RunMirror(unique_names(hosts))
        self.hosts = self.mirror.hosts
        self.remote_environments = HostEnvironments(hosts)
        self.remote_data = HostData(hosts)
        self._capacity = capacities[0]
        self._kit, self._local = kit, local
        self._reported_nodes: set[tuple[Handle, int | None, int]] = set()  # handle, attempt and rank of lost nodes

    def render(self, order: WorkOrder) -> str:
        return self._local.render(order, machine=", ".join(node.name for node in order.nodes) or next(iter(self.hosts)))

    def start(self, order: WorkOrder, digests: Mapping[str, str] | None = None) -> Handle:
        folder = RunFolder(Path(order.folder))
        handle = Handle(order.run_id, order.folder)
        names = [node.name for node in order.nodes] or [next(iter(self.hosts))]
        unknown = [name for name in names if name not in self.hosts]
        if unknown:
            raise ComputeTargetException(f"unknown host {', '.join(unknown)}; hosts: {', '.join(self.hosts)}")
        if self.mirror.attempt(handle) != order.attempt:
            self.mirror.unfollow(handle)  # a lost host may be back: it would write into the new attempt's files
            folder.root.mkdir(parents=True, exist_ok=True)
            # files of earlier attempts are kept: this attempt's content is appended to them
            self.mirror.write_location(folder.root, order.attempt, names, file_sync.sizes(folder.root))
        write_order(folder.order, order)
        try:
            self._start(order, handle, [self.hosts[name] for name in names], digests or {})
        except ConnectionLost as error:
            self._cancel_start(handle)
            raise ComputeTargetException(f"the connection to a host was lost: {error}", transient=True) from error
        except (RunyardException, OSError):
            self._cancel_start(handle)
            raise
        with suppress(OSError, ValueError):  # a stop request that came while the run was being started
            self._send_stop(handle, str(json.loads(folder.stop.read_bytes())["reason"]))
        return handle

    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        """From what the hosts have reported: the runs of an unreachable host count as alive until it is lost."""
        agents = {}
        for handle in handles:
            lead = self.mirror.follow(handle)
            if lead is not None and not lead.agent_is_gone and not self.mirror.lost_host(handle):
                agents[handle] = AgentStatus(lead.agent_pid)
                self._report_lost_nodes(handle)
        return agents

    def explain_loss(self, handle: Handle) -> End | None:
        """If a host is lost, also request that it stop the run when it is reachable again."""
        host = self.mirror.lost_host(handle)
        if host is None:
            return None
        self._send_stop(handle, EndReason.NODE_LOST.value)
        return End(EndReason.NODE_LOST, unreachable_text(host), node=host.name)

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        folder = RunFolder(Path(handle.folder))
        if folder.root.is_dir():
            # The file first: a thread that is just starting the run reads it, even if no host has the run yet.
            write_text(folder.stop, json.dumps({"reason": reason}))
            self._send_stop(handle, reason)

    def stop_leftovers(self, handle: Handle) -> int:
        remaining = 0
        for host in self.mirror.hosts_of(handle):
            try:
                require_reachable(host)
                remaining += int(host.call("stop_leftovers", run_id=handle.run_id, retry_s=_LEFTOVERS_RETRY_S))
            except ComputeTargetException:  # unknown: at least one may remain
                remaining += 1
        return remaining

    def capacity(self) -> Capacity:
        return self._capacity

    def _start(self, order: WorkOrder, handle: Handle, hosts: list[Host], digests: Mapping[str, str]) -> None:
        started = hosts[0].call("started_attempt", run_id=order.run_id, node_rank=0, retry_s=_START_RETRY_S)
        if started != order.attempt:
            copy = read_working_copy(RunFolder(Path(order.folder)).work, digests)
            with ThreadPoolExecutor(len(hosts), "send-working-copy") as pool:
                list(pool.map(lambda host: send_working_copy(host, order.run_id, copy), hosts))
        # the current addresses: those in the order are from when the hosts were attached
        nodes = tuple(Node(node.name, str(host.facts["address"])) for node, host in zip(order.nodes, hosts))
        order = replace(order, nodes=nodes, secret=order.secret or secrets.token_hex(32))
        self._start_agent(hosts[0], replace(order, node_rank=0), handle)
        if len(hosts) == 1:
            return
        lead = hosts[0].call("lead_address", run_id=order.run_id, attempt=order.attempt, timeout_s=90.0)
        if lead is None:
            return  # the lead agent ended and recorded why
        for rank, host in enumerate(hosts[1:], start=1):
            self._start_agent(host, replace(order, node_rank=rank, lead=str(lead)), handle)

    def _start_agent(self, host: Host, order: WorkOrder, handle: Handle) -> None:
        host_order = translate(order, host.facts, self._kit)
        pid = host.call("start_agent", order=to_json(host_order), retry_s=_START_RETRY_S)
        run = FollowedRun(Path(handle.folder), order.node_rank, self.mirror.bases(handle), agent_pid=int(pid))
        host.follow(order.run_id, run)

    def _report_lost_nodes(self, handle: Handle) -> None:
        """Inform the lead of agents on other hosts that are gone: it may have no connection to them yet."""
        attempt = self.mirror.attempt(handle)
        lead, *hosts = self.mirror.hosts_of(handle)
        for node_rank, host in enumerate(hosts, start=1):
            run, key = host.followed(handle.run_id), (handle, attempt, node_rank)
            if run is not None and run.agent_is_gone and key not in self._reported_nodes:
                self._reported_nodes.add(key)
                arguments = (lead, host, handle.run_id, node_rank, attempt)
                threading.Thread(target=_report_lost_node, args=arguments, name="report-lost-node", daemon=True).start()

    def _send_stop(self, handle: Handle, reason: str) -> None:
        """In a separate thread: an unreachable host receives the request when it is reachable again."""
        hosts, attempt = self.mirror.hosts_of(handle), self.mirror.attempt(handle)

        def send() -> None:
            with suppress(ComputeTargetException):
                hosts[0].call("stop", run_id=handle.run_id, reason=reason, attempt=attempt, retry_s=_STOP_RETRY_S)

        if hosts:
            threading.Thread(target=send, name=f"stop-{handle.run_id}", daemon=True).start()

    def _cancel_start(self, handle: Handle) -> None:
        """Stop an agent that may have started although its reply was lost. Before returning, if possible: the run's
        folder may be deleted next, and with it the location of the agent."""
        reason, attempt = EndReason.LAUNCH_FAILED.value, self.mirror.attempt(handle)
        try:
            for lead in self.mirror.hosts_of(handle)[:1]:
                lead.call("stop", run_id=handle.run_id, reason=reason, attempt=attempt, timeout_s=_CANCEL_START_S)
        except (RunyardException, OSError):
            self._send_stop(handle, reason)


def _report_lost_node(lead: Host, host: Host, run_id: str, node_rank: int, attempt: int) -> None:
    arguments: dict[str, Any] = {
        "run_id": run_id,
        "node_rank": node_rank,
        "attempt": attempt,
        "retry_s": _START_RETRY_S,
    }
    with suppress(ComputeTargetException):  # unreachable: then the lead waits until its timeout
        if host.call("agent_has_died", **arguments):
            lead.call("report_lost_node", evidence="its agent died before it connected", **arguments)
