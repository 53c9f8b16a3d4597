"""Who may start on this machine, and on which GPUs: first come, first served.

No I/O, and the costs do not grow with the length of the line.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import replace

from runyard.compute.base import Capacity
from runyard.compute.placing import Placement
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


def check(resources: Resources, capacity: Capacity) -> None:
    """Refuse what could never start here. More processes than cores is allowed: then they take turns."""
    problems: list[tuple[str, str]] = []
    if resources.nodes > 1:
        problems.append(
            (f"asks for {resources.nodes} nodes; 'local' is one machine", "ask for several processes per node instead")
        )
    if resources.cpus_per_process > capacity.cpus:
        problems.append(
            (
                f"asks for {_count(resources.cpus_per_process, 'CPU')} per process; this machine has {capacity.cpus}",
                f"ask for {capacity.cpus} or fewer",
            )
        )
    if resources.memory_gb > capacity.memory_gb:
        problems.append(
            (
                f"asks for {resources.memory_gb:g} GB of memory; this machine has {capacity.memory_gb:g} GB",
                "ask for less, or leave memory_gb at 0",
            )
        )
    have = len(capacity.gpus)
    asked = resources.gpus_per_process if resources.share_gpus else resources.gpus_per_node
    if have and asked > have:
        hint = f"ask for {have} or fewer" if resources.gpus_per_process > have else "share_gpus=True lets them share"
        problems.append((f"asks for {_count(asked, 'GPU')}; this machine has {have}", hint))
    if problems:
        raise ComputeTargetException(
            "the run " + "; ".join(p for p, _ in problems), hint="; ".join(h for _, h in problems)
        )


def fit(resources: Resources, capacity: Capacity) -> tuple[Resources, tuple[str, ...]]:
    """What the run will really be given, with a warning for each difference; raises as ``check`` does."""
    check(resources, capacity)
    warnings: list[str] = []
    if resources.gpus_per_process and not capacity.gpus:
        resources = replace(resources, gpus_per_process=0)
        warnings.append("a GPU was asked for and this machine has none: it runs on the CPU")
    if resources.cpus_per_node > capacity.cpus:
        asked = f"{resources.processes_per_node} processes of {_count(resources.cpus_per_process, 'CPU')}"
        warnings.append(f"{asked} share the {_count(capacity.cpus, 'CPU')} of this machine")
    return resources, tuple(warnings)


class LocalQueue:
    """A run asks, is placed in its turn, and leaves. May be used from any thread; each verb may be said twice.

    The first in line is never overtaken, so that a big request gets its turn.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._next_ticket = 0
        self._line: list[int] = []  # tickets in order; a ticket finds its place by bisection
        self._run_of_ticket: dict[int, str] = {}
        self._waiting: dict[str, tuple[int, Resources]] = {}
        self._placed: dict[str, tuple[Placement, Resources]] = {}
        self._cpus_in_use = 0
        self._memory_in_use_gb = 0.0
        self._gpu_users: Counter[int] = Counter()
        self._exclusive: set[int] = set()

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        return fit(resources, self.capacity)

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """Join the line; ``resources`` as ``fit`` gave them."""
        with self._lock:
            if run_id in self._waiting or run_id in self._placed:
                return
            ticket = self._next_ticket if turn is None else turn
            self._next_ticket = max(self._next_ticket, ticket + 1)
            insort(self._line, ticket)
            self._run_of_ticket[ticket] = run_id
            self._waiting[run_id] = (ticket, resources)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        """A run that a former yard placed, and that still runs: it holds its share without having to ask."""
        with self._lock:
            if run_id not in self._placed:
                self._forget_waiting(run_id)
                self._take(placement, resources)

    def leave(self, run_id: str) -> None:
        """Out of the line, or off the machine."""
        with self._lock:
            self._forget_waiting(run_id)
            placement, resources = self._placed.pop(run_id, (None, None))
            if placement is None or resources is None:
                return
            self._cpus_in_use -= self._cpus(resources)
            self._memory_in_use_gb -= resources.memory_gb
            for index in placement.gpus:
                self._gpu_users[index] -= 1
                if not resources.share_gpus:
                    self._exclusive.discard(index)

    def place(self) -> list[Placement]:
        """Those whose turn has come. What they asked for is theirs until they leave."""
        placements = []
        with self._lock:
            while self._line:
                run_id = self._run_of_ticket[self._line[0]]
                resources = self._waiting[run_id][1]
                if self._lacking(resources):
                    break
                placements.append(self._place_first(run_id, resources))
        return placements

    def place_if_first(self, run_id: str) -> bool:
        """Whether this run, having just asked, may start at once: nobody is before it and there is room."""
        with self._lock:
            if not self._line or self._run_of_ticket[self._line[0]] != run_id:
                return False
            resources = self._waiting[run_id][1]
            if self._lacking(resources):
                return False
            self._place_first(run_id, resources)
            return True

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            placed = self._placed.get(run_id)
            return placed[0] if placed else None

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._waiting]

    def reason(self, run_id: str) -> str:
        """Why it has not started, in a person's words; empty when it is not waiting."""
        with self._lock:
            if run_id not in self._waiting:
                return ""
            ticket, resources = self._waiting[run_id]
            place = f"position {bisect_left(self._line, ticket) + 1} of {len(self._line)}"
            lacking = self._lacking(resources)
            return f"{place}; {lacking}" if lacking else f"{place}; waiting for its turn"

    def _place_first(self, run_id: str, resources: Resources) -> Placement:
        self._forget_waiting(run_id)
        placement = Placement(run_id, self._free_gpus(resources)[: self._gpu_count(resources)])
        self._take(placement, resources)
        return placement

    def _lacking(self, resources: Resources) -> str:
        needs: list[str] = []
        cpus, memory_gb, gpus = self._cpus(resources), resources.memory_gb, self._gpu_count(resources)
        have = self.capacity
        if cpus > have.cpus - self._cpus_in_use:
            needs.append(f"waiting for {_count(cpus, 'CPU')}; {self._cpus_in_use} of {have.cpus} in use")
        if memory_gb > have.memory_gb - self._memory_in_use_gb + 1e-9:
            in_use = f"{self._memory_in_use_gb:g} of {have.memory_gb:g} GB in use"
            needs.append(f"waiting for {memory_gb:g} GB of memory; {in_use}")
        if gpus > len(self._free_gpus(resources)):
            in_use = f"{sum(1 for users in self._gpu_users.values() if users)} of {len(have.gpus)} in use"
            needs.append(f"waiting for {_count(gpus, 'GPU')}; {in_use}")
        return f"{', '.join(needs)} by {self._holders()}" if needs else ""

    def _free_gpus(self, resources: Resources) -> tuple[int, ...]:
        """Best first. A run that shares goes only where all others share too."""
        if resources.gpus_per_process == 0:
            return ()
        indices = [gpu.index for gpu in self.capacity.gpus]
        if not resources.share_gpus:
            return tuple(index for index in indices if not self._gpu_users[index])
        return tuple(sorted((i for i in indices if i not in self._exclusive), key=lambda i: (self._gpu_users[i], i)))

    def _take(self, placement: Placement, resources: Resources) -> None:
        self._placed[placement.run_id] = (placement, resources)
        self._cpus_in_use += self._cpus(resources)
        self._memory_in_use_gb += resources.memory_gb
        self._gpu_users.update(placement.gpus)
        if not resources.share_gpus:
            self._exclusive.update(placement.gpus)

    def _forget_waiting(self, run_id: str) -> None:
        ticket, _ = self._waiting.pop(run_id, (None, None))
        if ticket is not None:
            del self._run_of_ticket[ticket]
            del self._line[bisect_left(self._line, ticket)]

    def _cpus(self, resources: Resources) -> int:
        return min(resources.cpus_per_node, self.capacity.cpus)

    def _gpu_count(self, resources: Resources) -> int:
        return min(resources.gpus_per_node, len(self.capacity.gpus))

    def _holders(self) -> str:
        names = list(self._placed)
        shown = ", ".join(names[:3])
        return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
