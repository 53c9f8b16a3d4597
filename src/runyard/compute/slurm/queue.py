"""Slurm has a line of its own: every run is handed over at once, and waits there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from runyard.compute.scheduling.queue import Placement
from runyard.compute.slurm.client import Partition
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


class HandedOver:
    """``partition`` gives what Slurm said of it, or None when it cannot be asked: then Slurm itself refuses later.
    ``waiting_for`` gives Slurm's reason for a run that it lets wait."""

    def __init__(
        self,
        partition: Callable[[], Partition | None],
        waiting_for: Callable[[str], str],
        most_nodes: int | None = None,
    ) -> None:
        self._partition, self._waiting_for, self._most_nodes = partition, waiting_for, most_nodes
        self._lock = threading.Lock()
        self._asked: dict[str, Placement] = {}
        self._placed: dict[str, Placement] = {}

    def resize(self, nodes: int) -> None:
        """Of a cluster that a person bounded more than its partition is; runs that are there stay."""
        self._most_nodes = nodes

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        if self._most_nodes is not None and resources.nodes > self._most_nodes:
            raise ComputeTargetException(
                f"the run asks for {_count(resources.nodes, 'node')}; the cluster has {self._most_nodes} at most",
                hint=f"ask for fewer, or cluster.update(max_nodes={resources.nodes})",
            )
        there = self._partition()
        return (resources, ()) if there is None else fit(resources, there)

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        with self._lock:
            if run_id not in self._placed:
                # which nodes they are is Slurm's to say; until then they only have numbers
                self._asked.setdefault(run_id, Placement(run_id, nodes=tuple(range(resources.nodes))))

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        with self._lock:
            self._placed.setdefault(run_id, placement)

    def leave(self, run_id: str) -> None:
        with self._lock:
            self._placed.pop(run_id, None)
            self._asked.pop(run_id, None)

    def place(self) -> list[Placement]:
        with self._lock:
            return [self._place(run_id) for run_id in list(self._asked)]

    def place_if_first(self, run_id: str) -> bool:
        with self._lock:
            if run_id in self._asked:
                self._place(run_id)
            return run_id in self._placed

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def placements(self) -> dict[str, Placement]:
        """Runs that Slurm has, with the number of their nodes."""
        with self._lock:
            return dict(self._placed)

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._asked]

    def reason(self, run_id: str) -> str:
        return self._waiting_for(run_id)

    def _place(self, run_id: str) -> Placement:
        placed = self._placed[run_id] = self._asked.pop(run_id)
        return placed


def fit(resources: Resources, there: Partition) -> tuple[Resources, tuple[str, ...]]:
    """Refuses what the partition can never give; what Slurm forbids for other reasons it says itself."""
    where = f"partition {there.name!r}"
    problems: list[tuple[str, str]] = []
    if resources.nodes > there.nodes:
        problems.append(
            (f"{_count(resources.nodes, 'node')}; {where} has {there.nodes}", f"ask for {there.nodes} or fewer")
        )
    if there.cpus and resources.cpus_per_process > there.cpus:
        has = f"the largest node of {where} has {there.cpus}"
        problems.append((f"{resources.cpus_per_process} CPUs per process; {has}", f"ask for {there.cpus} or fewer"))
    if there.memory_gb and resources.memory_gb > there.memory_gb:
        has = f"the largest node of {where} has {there.memory_gb:g} GB"
        problems.append((f"{resources.memory_gb:g} GB of memory; {has}", "ask for less"))
    if there.gpus and resources.gpus_per_node > there.gpus:
        has = f"the largest node of {where} has {there.gpus}"
        problems.append(
            (f"{_count(resources.gpus_per_node, 'GPU')} per node; {has}", "ask for fewer per node, on more nodes")
        )
    if problems:
        raise ComputeTargetException(
            "the run asks for " + ", and for ".join(problem for problem, _ in problems),
            hint="; ".join(hint for _, hint in problems),
        )
    warnings: list[str] = []
    if resources.gpus_per_process and not there.gpus:
        resources = replace(resources, gpus_per_process=0)
        warnings.append(f"a GPU was asked for and {where} has none: it runs on the CPU")
    if there.cpus and resources.cpus_per_node > there.cpus:
        asked = f"{resources.processes_per_node} processes of {_count(resources.cpus_per_process, 'CPU')}"
        warnings.append(f"{asked} share the {_count(there.cpus, 'CPU')} of a node of {where}")
    return resources, tuple(warnings)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
