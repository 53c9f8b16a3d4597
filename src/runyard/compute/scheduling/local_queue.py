"""Who may start on this machine, and on which GPUs: first come, first served. No I/O."""

from __future__ import annotations

import threading
from dataclasses import replace

from runyard.compute.base import Capacity
from runyard.compute.scheduling.fifo import Line
from runyard.compute.scheduling.queue import Placement
from runyard.compute.scheduling.resource_ledger import Share, count
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


def check(resources: Resources, capacity: Capacity, machine: str = "this machine") -> None:
    """Refuse what could never start here. More processes than cores is allowed: then they take turns."""
    problems: list[tuple[str, str]] = []
    if resources.nodes > 1:
        problems.append(
            (f"asks for {resources.nodes} nodes; 'local' is one machine", "ask for several processes per node instead")
        )
    if resources.cpus_per_process > capacity.cpus:
        problems.append(
            (
                f"asks for {count(resources.cpus_per_process, 'CPU')} per process; {machine} has {capacity.cpus}",
                f"ask for {capacity.cpus} or fewer",
            )
        )
    if resources.memory_gb > capacity.memory_gb:
        problems.append(
            (
                f"asks for {resources.memory_gb:g} GB of memory; {machine} has {capacity.memory_gb:g} GB",
                "ask for less, or for none: then it is not counted",
            )
        )
    have = len(capacity.gpus)
    asked = resources.gpus_per_process if resources.share_gpus else resources.gpus_per_node
    if have and asked > have:
        hint = f"ask for {have} or fewer" if resources.gpus_per_process > have else "share_gpus=True lets them share"
        problems.append((f"asks for {count(asked, 'GPU')}; {machine} has {have}", hint))
    if problems:
        raise ComputeTargetException(
            "the run " + "; ".join(p for p, _ in problems), hint="; ".join(h for _, h in problems)
        )


def fit(resources: Resources, capacity: Capacity, machine: str = "this machine") -> tuple[Resources, tuple[str, ...]]:
    """What the run will really be given, with a warning for each difference; raises as ``check`` does."""
    check(resources, capacity, machine)
    warnings: list[str] = []
    if resources.gpus_per_process and not capacity.gpus:
        resources = replace(resources, gpus_per_process=0)
        warnings.append(f"a GPU was asked for and {machine} has none: it runs on the CPU")
    if resources.cpus_per_node > capacity.cpus:
        asked = f"{resources.processes_per_node} processes of {count(resources.cpus_per_process, 'CPU')}"
        warnings.append(f"{asked} share the {count(capacity.cpus, 'CPU')} of {machine}")
    return resources, tuple(warnings)


class LocalQueue:
    """A run asks, is placed in its turn, and leaves. May be used from any thread; each verb may be said twice.

    The first in line is never overtaken, so that a big request gets its turn.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._share = Share(capacity)
        self._lock = threading.Lock()
        self._line = Line()
        self._placed: dict[str, Placement] = {}

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        return fit(resources, self.capacity)

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """Join the line; ``resources`` as ``fit`` gave them."""
        with self._lock:
            if run_id not in self._line and run_id not in self._placed:
                self._line.join(run_id, resources, turn)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        """A run that a former yard placed, and that still runs: it holds its share without having to ask."""
        with self._lock:
            if run_id not in self._placed:
                self._line.leave(run_id)
                self._take(placement, resources)

    def leave(self, run_id: str) -> None:
        """Out of the line, or off the machine."""
        with self._lock:
            self._line.leave(run_id)
            self._placed.pop(run_id, None)
            self._share.give_back(run_id)

    def place(self) -> list[Placement]:
        """Those whose turn has come. What they asked for is theirs until they leave."""
        placements = []
        with self._lock:
            while (first := self._line.first) and not self._share.lacking(first[1]):
                placements.append(self._place_first(*first))
        return placements

    def place_if_first(self, run_id: str) -> bool:
        """Whether this run, having just asked, may start at once: nobody is before it and there is room."""
        with self._lock:
            first = self._line.first
            if first is None or first[0] != run_id or self._share.lacking(first[1]):
                return False
            self._place_first(*first)
            return True

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._line]

    def reason(self, run_id: str) -> str:
        """Why it has not started, in a person's words; empty when it is not waiting."""
        with self._lock:
            if run_id not in self._line:
                return ""
            lacking = self._share.lacking(self._line.asked(run_id))
            return f"{self._line.position(run_id)}; {lacking or 'waiting for its turn'}"

    def _place_first(self, run_id: str, resources: Resources) -> Placement:
        self._line.leave(run_id)
        placement = Placement(run_id, self._share.free_gpus(resources)[: self._share.gpu_count(resources)])
        self._take(placement, resources)
        return placement

    def _take(self, placement: Placement, resources: Resources) -> None:
        self._placed[placement.run_id] = placement
        self._share.take(placement.run_id, placement.gpus, resources)
