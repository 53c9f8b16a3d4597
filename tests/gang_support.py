"""Runs of several nodes on this machine: orders written by hand, one cold agent for each node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import runyard
from runyard.launch.order import Node, WorkOrder
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json
from runyard.testing.compute import end_of, make_order, processes_of, wait_until

SOURCE = str(Path(runyard.__file__).parents[1])


@dataclass
class Gang:
    orders: list[WorkOrder]
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(Path(self.orders[0].folder))

    def start(self) -> Gang:
        for order in self.orders:
            self.start_node(order.node_rank)
        return self

    def start_node(self, node_rank: int) -> None:
        order = self.orders[node_rank]
        path = self.folder.node(node_rank).order
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(to_json(order)))
        command = [sys.executable, "-S", "-m", "runyard.agent", str(path)]
        self.agents.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": SOURCE}))

    def end(self) -> End:
        end = end_of(self.orders[0])
        for agent in self.agents:
            agent.wait(timeout=60)
        return end

    def log(self, suffix: str) -> str:
        path = self.folder.driver_log(suffix)
        return path.read_text() if path.exists() else ""

    def wait_for_line(self, *suffixes: str) -> None:
        wait_until(lambda: all(self.log(suffix) for suffix in suffixes), f"a line of {suffixes}")

    def left(self) -> list[int]:
        return processes_of(self.orders[0])

    def events(self, node_rank: int = 0) -> list[dict[str, Any]]:
        path = self.folder.node(node_rank).events
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def a_gang(
    root: Path, script: str, launch: Any, *arguments: str, nodes: int = 2, run_id: str = "run_1", **fields: Any
) -> Gang:
    python = fields.pop("python", "")
    order = make_order(root, script, *arguments, run_id=run_id, launch=launch, **fields)
    if python:
        order = replace(order, argv=(python, *order.argv[2:]))
    everyone = tuple(Node(f"node-{number}") for number in range(nodes))
    order = replace(order, nodes=everyone, secret=order.secret or "between the agents of one run")
    return Gang([replace(order, node_rank=number) for number in range(nodes)])


@contextmanager
def running(gang: Gang) -> Iterator[Gang]:
    """Started; and whatever is left of it after a test that failed is ended."""
    try:
        yield gang.start()
    finally:
        for agent in gang.agents:
            if agent.poll() is None:
                agent.kill()
            agent.wait()
        for pid in gang.left():
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
