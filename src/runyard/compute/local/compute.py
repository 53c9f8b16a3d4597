"""Runs on this machine: an agent per run, forked by the nursery, held by nobody but itself."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard.agent.process.process_tree import stop_everything
from runyard.agent.process.scratch import clear_left
from runyard.compute.base import Capacity, Compute, Handle, Observed
from runyard.compute.local.forkserver_client import Nursery
from runyard.compute.local.machine import this_machine
from runyard.errors import ComputeTargetException
from runyard.launch.argv import expand
from runyard.launch.order import WorkOrder, read_order
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_SWEEP_GRACE_S = 2.0  # the agent that would have been more patient is gone


class LocalCompute(Compute):
    def __init__(self, home: Path, nursery: Nursery | None = None) -> None:
        self.home = home
        self.nursery = nursery or Nursery()

    def render(self, order: WorkOrder, machine: str = "this machine") -> str:
        folder = RunFolder(Path(order.folder))
        words = (*order.argv[:1], *expand(order.argv[1:], order.variables))
        variables = [f"  {shlex.quote(f'{name}={value}')} \\" for name, value in sorted(order.variables.items())]
        lines = [
            f"# {order.run_id}: started by an agent on {machine}, in a session of its own",
            *([f"# ended after {order.max_run_duration_seconds} s"] if order.max_run_duration_seconds else []),
            *([f"# ended above {order.memory_limit_gb:g} GB"] if order.memory_limit_gb else []),
            f"cd {shlex.quote(str(folder.work))}",
            "exec env -i \\",
            *variables,
            f"  {shlex.join(words)} \\",
            f"  < /dev/null >> {shlex.quote(str(folder.driver_log()))} 2>&1",
        ]
        return "\n".join(lines) + "\n"

    def start(self, order: WorkOrder) -> Handle:
        folder = RunFolder(Path(order.folder))
        try:
            folder.root.mkdir(parents=True, exist_ok=True)
            write_text(folder.order, json.dumps(to_json(order)))
        except OSError as error:
            raise ComputeTargetException(
                f"the order of {order.run_id} could not be written: {error}",
                hint="is the disk of the yard's home full?",
            ) from error
        for node_rank in range(1, len(order.nodes)):
            # the lead comes last: by then everybody whom it waits for is on the way
            node = folder.node(node_rank)
            node.root.mkdir(parents=True, exist_ok=True)
            write_text(node.order, json.dumps(to_json(replace(order, node_rank=node_rank))))
            self.nursery.fork_agent(node.order)
        self.nursery.fork_agent(folder.order)
        return Handle(order.run_id, order.folder)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, Observed]:
        observed = ((handle, agent_of(RunFolder(Path(handle.folder)))) for handle in handles)
        return {handle: agent for handle, agent in observed if agent is not None}

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        folder = RunFolder(Path(handle.folder))
        if not folder.root.is_dir():
            return
        # The reason first: an agent that is just starting finds it even though the signal came too early.
        write_text(folder.stop, json.dumps({"reason": reason}))
        agent = agent_of(folder)
        if agent is None or agent.pid is None:
            return
        with suppress(OSError):
            process = os.pidfd_open(agent.pid)
            try:
                # Asked again with the process in hand: the pid may have been somebody else's by the time it was opened.
                if agent_of(folder) == agent:
                    signal.pidfd_send_signal(process, signal.SIGTERM)
            finally:
                os.close(process)

    def sweep(self, handle: Handle) -> int:
        folder = RunFolder(Path(handle.folder))
        tag = process_tag(handle.run_id, folder)
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            order = read_order(folder.order)
            tag = order.variables.get(PROCESS_TAG, tag)
            if order.stop_argv:
                subprocess.run(order.stop_argv, env=order.variables, capture_output=True, timeout=order.grace_s)
        left = stop_everything(tag, _SWEEP_GRACE_S)
        clear_left(tag)
        return left

    def capacity(self) -> Capacity:
        return this_machine()

    def close(self) -> None:
        """Runs go on."""
        self.nursery.close()


def agent_of(folder: RunFolder) -> Observed | None:
    """A lock that cannot be shared is held by an agent; one that can be is given back within microseconds."""
    try:
        lock = os.open(folder.agent_lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(lock, 32).strip()
        return Observed(int(text) if text.isdigit() else None)
    finally:
        os.close(lock)
    return None
