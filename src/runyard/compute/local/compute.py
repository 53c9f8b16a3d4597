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
from runyard.launch.order import WorkOrder, read_order
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.posix import file_lock
from runyard.posix.atomic_write import write_text
from runyard.posix.machine import machine_capacity
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_LEFTOVERS_GRACE_S = 2.0  # short: the agent, which grants the full grace period, is gone


class LocalCompute(Compute):
    on_yard_machine = True

    def __init__(self, home: Path, forkserver: ForkserverClient | None = None) -> None:
        self.home = home
        self.forkserver = forkserver or ForkserverClient()

    def render(self, order: WorkOrder, machine: str = "this machine") -> str:
        folder = RunFolder(Path(order.folder))
        argv = (*order.argv[:1], *expand(order.argv[1:], order.variables))
        variables = [f"  {shlex.quote(f'{name}={value}')} \\" for name, value in sorted(order.variables.items())]
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
            write_text(folder.order, json.dumps(to_json(order)))
        except OSError as error:
            raise ComputeTargetException(
                f"cannot write the order of {order.run_id}: {error}", hint="is the disk of the yard's home full?"
            ) from error
        for node_rank in range(1, len(order.nodes)):
            # the lead is started last: by then the agents that it waits for are starting
            node = folder.node(node_rank)
            node.root.mkdir(parents=True, exist_ok=True)
            write_text(node.order, json.dumps(to_json(replace(order, node_rank=node_rank))))
            self.forkserver.fork_agent(node.order)
        self.forkserver.fork_agent(folder.order)
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
        agent = agent_status(folder)
        if agent is None or agent.pid is None:
            return
        with suppress(OSError):
            process = os.pidfd_open(agent.pid)
            try:
                # Checked again with the process open: the pid may have been reused before it was opened.
                if agent_status(folder) == agent:
                    signal.pidfd_send_signal(process, signal.SIGTERM)
            finally:
                os.close(process)

    def stop_leftovers(self, handle: Handle) -> int:
        folder = RunFolder(Path(handle.folder))
        tag = process_tag(handle.run_id, folder)
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            order = read_order(folder.order)
            tag = order.variables.get(PROCESS_TAG, tag)
            if order.stop_argv:
                subprocess.run(order.stop_argv, env=order.variables, capture_output=True, timeout=order.grace_s)
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
