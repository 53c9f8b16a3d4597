"""Runs of several nodes on this machine, with one agent process per node."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import runyard
from netns_support import Host
from runyard.agent.process.scratch import clear_leftovers
from runyard.launch.order import Node, WorkOrder
from runyard.launch.variables import PROCESS_TAG, process_tag
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json
from runyard.testing.work_orders import end_of, make_order, processes_of, wait_until

SOURCE = str(Path(runyard.__file__).parents[1])


@dataclass
class Gang:
    orders: list[WorkOrder]
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)
    hosts: Sequence[Host] = ()  # empty: all nodes are simulated on this machine

    @property
    def folder(self) -> RunFolder:
        return self.folder_of(0)

    def folder_of(self, node_rank: int) -> RunFolder:
        return RunFolder(Path(self.orders[node_rank].folder))

    def start(self) -> Gang:
        for order in self.orders:
            self.start_node(order.node_rank)
            if self.hosts and order.node_rank == 0:
                address = wait_until(self._lead_address, "the lead to listen")
                self.orders = [replace(order, lead=address) for order in self.orders]
        return self

    def _lead_address(self) -> str:
        lead = json.loads(self.folder.lead.read_bytes()) if self.folder.lead.exists() else {}
        return lead["place"] if lead.get("attempt") == self.orders[0].attempt else ""

    def write_order(self, node_rank: int) -> Path:
        path = self.folder_of(node_rank).node(node_rank).order
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(to_json(self.orders[node_rank])))
        return path

    def start_node(self, node_rank: int) -> None:
        path = self.write_order(node_rank)
        command = [sys.executable, "-S", "-m", "runyard.agent", str(path)]
        if self.hosts:
            command = self.hosts[node_rank].command(*command)
        self.agents.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": SOURCE}))

    def lead_end(self) -> End:
        return end_of(self.orders[0])

    def end(self) -> End:
        end = self.lead_end()
        for agent in self.agents:
            agent.wait(timeout=60)
        return end

    def log(self, suffix: str) -> str:
        paths = (self.folder_of(order.node_rank).driver_log(suffix) for order in self.orders)
        return next((path.read_text() for path in paths if path.exists()), "")

    def wait_for_line(self, *suffixes: str) -> None:
        wait_until(lambda: all("\n" in self.log(suffix) for suffix in suffixes), f"a line of {suffixes}")

    def remaining_pids(self) -> list[int]:
        return sorted({pid for order in self.orders for pid in processes_of(order)})

    def events(self, node_rank: int = 0) -> list[dict[str, Any]]:
        path = self.folder_of(node_rank).node(node_rank).events
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def make_gang(
    root: Path, script: str, launch: Any, *arguments: str, nodes: int = 2, run_id: str = "run_1", **fields: Any
) -> Gang:
    python = fields.pop("python", "")
    order = make_order(root, script, *arguments, run_id=run_id, launch=launch, **fields)
    if python:
        order = replace(order, argv=(python, *order.argv[2:]))
    all_nodes = tuple(Node(f"node-{number}") for number in range(nodes))
    order = replace(order, nodes=all_nodes, secret=order.secret or "shared by the agents of one run")
    return Gang([replace(order, node_rank=number) for number in range(nodes)])


def spread(gang: Gang, hosts: Sequence[Host]) -> Gang:
    """The same run with every node on a separate host and without a shared folder."""
    nodes = tuple(Node(host.name, host.address) for host in hosts)
    orders = []
    for order, host in zip(gang.orders, hosts):
        folder = RunFolder(Path(order.folder).parent / host.name / order.run_id)
        shutil.copytree(RunFolder(Path(order.folder)).work, folder.work)
        tag = {PROCESS_TAG: process_tag(order.run_id, folder)}
        variables = {**order.variables, **tag}
        orders.append(replace(order, folder=str(folder.root), nodes=nodes, variables=variables))
    return Gang(orders, hosts=hosts)


@contextmanager
def running(gang: Gang) -> Iterator[Gang]:
    """Start the gang, and kill what remains of it at the end."""
    with killed_at_the_end(gang):
        yield gang.start()


@contextmanager
def killed_at_the_end(gang: Gang) -> Iterator[Gang]:
    """Kill what remains of the gang at the end. The caller starts its nodes."""
    try:
        yield gang
    finally:
        for agent in gang.agents:
            if agent.poll() is None:
                agent.kill()
            agent.wait()
        for pid in gang.remaining_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        for order in gang.orders:  # as a compute target does for killed agents
            clear_leftovers(
                order.variables.get(PROCESS_TAG) or process_tag(order.run_id, RunFolder(Path(order.folder)))
            )


@contextmanager
def killed_at_start(home: Path, lock: str) -> Iterator[None]:
    """Kill the agent of the next run that writes its process id into this lock file, within a millisecond or two."""
    runs, is_done = home / "runs", threading.Event()
    known = set(runs.glob(f"*/{lock}"))

    def watch() -> None:
        while not is_done.is_set():
            for path in set(runs.glob(f"*/{lock}")) - known:
                text = path.read_text()
                if text.endswith("\n"):
                    os.kill(int(text), signal.SIGKILL)
                    is_done.set()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
