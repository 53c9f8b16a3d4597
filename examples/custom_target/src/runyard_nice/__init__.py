"""A compute target that starts runs on the yard's machine with a lower CPU priority."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runyard.compute.base import AgentStatus, Capacity, Compute, Handle
from runyard.compute.kind import Configuration, TargetDeps, TargetKind
from runyard.compute.local.compute import LocalCompute, agent_status
from runyard.compute.scheduling.machine_pool import YardMachine
from runyard.compute.scheduling.queue import Queue
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder, write_order
from runyard.launch.private_variables import open_memory_file
from runyard.spec.folder import RunFolder

_START_TIMEOUT_S = 30.0


class NiceKind(TargetKind):
    """The entry point. Its only option is ``level``, from 0 to 19."""

    title = "the yard's machine with a lower priority"

    def check(self, name: str, configuration: Configuration, deps: TargetDeps) -> Configuration:
        unknown = sorted(set(configuration) - {"level"})
        if unknown:
            raise ComputeTargetException(f"{name!r}: unknown option {', '.join(unknown)}", hint="options: level")
        level = str(configuration.get("level", 10))
        if not level.isdecimal() or int(level) > 19:
            raise ComputeTargetException(f"{name!r}: level must be between 0 and 19, got {level}")
        return {"level": int(level)}

    def create(self, name: str, configuration: Configuration, deps: TargetDeps) -> tuple[Compute, Queue]:
        compute = NiceCompute(deps.local, deps.node_package, configuration["level"])
        return compute, Queue(YardMachine(name, compute.capacity()))


class NiceCompute(Compute):
    on_yard_machine = True

    def __init__(self, local: LocalCompute, node_package: Path, level: int) -> None:
        self._local, self._node_package, self._level = local, node_package, level

    def render(self, order: WorkOrder) -> str:
        return f"# nice -n {self._level}\n{self._local.render(order)}"

    def start(self, order: WorkOrder, digests: Mapping[str, str] | None = None) -> Handle:
        folder = RunFolder(Path(order.folder))
        for node_rank in reversed(range(max(1, len(order.nodes)))):  # the lead last, which waits for the others
            node = folder.node(node_rank)
            node.root.mkdir(parents=True, exist_ok=True)
            write_order(node.order, replace(order, node_rank=node_rank))  # without private variables
            self._start_agent(node, open_memory_file(order.private))
        return Handle(order.run_id, order.folder)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        return self._local.status(handles)

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        self._local.stop(handle, reason)

    def stop_leftovers(self, handle: Handle) -> int:
        return self._local.stop_leftovers(handle)

    def capacity(self) -> Capacity:
        return self._local.capacity()

    def _start_agent(self, node: RunFolder, private: int) -> None:
        """Return when the agent holds its lock, or has exited because the run has one already."""
        agent = [sys.executable, "-S", "-m", "runyard.agent", str(node.order), str(private)]
        process = subprocess.Popen(
            ["nice", "-n", str(self._level), *agent],
            env={**os.environ, "PYTHONPATH": str(self._node_package)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the agent outlives the yard
            pass_fds=[private],
        )
        os.close(private)
        threading.Thread(target=process.wait, daemon=True).start()  # reaps it
        deadline = time.monotonic() + _START_TIMEOUT_S
        while agent_status(node) is None and process.poll() is None:
            if time.monotonic() > deadline:
                raise ComputeTargetException(f"the agent of {node.root.name} did not start")
            time.sleep(0.01)
