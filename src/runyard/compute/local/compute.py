"""Runs on the yard's machine: one agent per run, forked by the forkserver, which outlives the yard."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard.agent.process.process_tree import stop_processes
from runyard.agent.process.scratch import clear_leftovers
from runyard.compute.base import AgentStatus, Capacity, Compute, Handle
from runyard.compute.local.forkserver_client import ForkserverClient
from runyard.errors import ComputeTargetException
from runyard.launch.argv import expand
from runyard.launch.order import WorkOrder, masked_variables, read_order, write_order
from runyard.launch.variables import PROCESS_TAG, clean_environment, process_tag
from runyard.posix import file_lock, procfs
from runyard.posix.atomic_write import write_text
from runyard.posix.machine import machine_capacity
from runyard.spec.folder import RunFolder

_LEFTOVERS_GRACE_S = 2.0  # short: the agent, which grants the full grace period, is gone


class LocalCompute(Compute):
    on_yard_machine = True

    def __init__(self, home: Path, forkserver: ForkserverClient | None = None) -> None:
        self.home = home
        self.forkserver = forkserver or ForkserverClient()

    def render(self, order: WorkOrder, machine: str = "this machine") -> str:
        folder = RunFolder(Path(order.folder))
        shown = masked_variables(order)
        argv = (*order.argv[:1], *expand(order.argv[1:], shown))
        variables = [f"  {shlex.quote(f'{name}={value}')} \\" for name, value in sorted(shown.items())]
        lines = [
            f"# {order.run_id}: started by an agent on {machine}, in its own session",
            *([f"# stopped after {order.max_run_duration_seconds} s"] if order.max_run_duration_seconds else []),
            *([f"# stopped above {order.memory_limit_gb:g} GB"] if order.memory_limit_gb else []),
            f"cd {shlex.quote(str(folder.work))}",
            "exec env -i \\",
            *variables,
            f"  {shlex.join(argv)} \\",
            f"  < /dev/null >> {shlex.quote(str(folder.driver_log()))} 2>&1",
        ]
        return "\n".join(lines) + "\n"

    def start(self, order: WorkOrder, digests: Mapping[str, str] | None = None) -> Handle:
        folder = RunFolder(Path(order.folder))
        try:
            folder.root.mkdir(parents=True, exist_ok=True)
            write_order(folder.order, order)
        except OSError as error:
            raise ComputeTargetException(
                f"cannot write the order of {order.run_id}: {error}", hint="is the disk of the yard's home full?"
            ) from error
        if order.attempt > 1:  # its agents must not take those of the previous attempt for their own
            for node_rank in range(max(len(order.nodes), 1)):
                file_lock.forget_holder(folder.node(node_rank).agent_lock)
        try:
            for node_rank in range(1, len(order.nodes)):
                # the lead is started last: by then the agents that it waits for are starting
                node = folder.node(node_rank)
                node.root.mkdir(parents=True, exist_ok=True)
                write_order(node.order, replace(order, node_rank=node_rank))
                self.forkserver.fork_agent(node.order, order.private)
            self.forkserver.fork_agent(folder.order, order.private)
        except (ComputeTargetException, OSError):
            for node_rank in range(1, len(order.nodes)):  # they would wait for a lead that never comes
                _terminate_agent(folder.node(node_rank))
            raise
        return Handle(order.run_id, order.folder)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        agents = ((handle, agent_status(RunFolder(Path(handle.folder)))) for handle in handles)
        return {handle: agent for handle, agent in agents if agent is not None}

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        folder = RunFolder(Path(handle.folder))
        if not folder.root.is_dir():
            return
        # The file first: an agent that is just starting reads it, even if the signal comes too early.
        write_text(folder.stop, json.dumps({"reason": reason}))
        _terminate_agent(folder)

    def stop_leftovers(self, handle: Handle) -> int:
        folder = RunFolder(Path(handle.folder))
        tag = process_tag(handle.run_id, folder)
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            order = read_order(folder.order)
            if order.variables.get(PROCESS_TAG, "").startswith(f"{handle.run_id}@"):  # not that of another run
                tag = order.variables[PROCESS_TAG]
            if order.stop_argv:
                variables = {**clean_environment(os.environ), **order.variables}
                subprocess.run(order.stop_argv, env=variables, capture_output=True, timeout=order.grace_s)
        remaining = stop_processes(tag, _LEFTOVERS_GRACE_S)
        clear_leftovers(tag)
        return remaining

    def capacity(self) -> Capacity:
        return machine_capacity()

    def close(self) -> None:
        self.forkserver.close()


def agent_status(folder: RunFolder) -> AgentStatus | None:
    """The agent that holds the lock of a run's folder; None if no agent does."""
    pid = file_lock.holder(folder.agent_lock)
    return None if pid is None else AgentStatus(pid or None)


def _terminate_agent(folder: RunFolder) -> None:
    agent = agent_status(folder)
    if agent is None or agent.pid is None:
        return
    with suppress(OSError):
        process = os.pidfd_open(agent.pid)
        try:
            # Checked again with the process open: the pid may have been reused before it was opened.
            # The file may contain any pid, because the script can write to it: the agent is the one that has it open.
            if agent_status(folder) == agent and procfs.has_open(agent.pid, folder.agent_lock):
                signal.pidfd_send_signal(process, signal.SIGTERM)
        finally:
            os.close(process)
