"""Who may start on a cluster: whole nodes, first come, first served. No I/O."""

from __future__ import annotations

import threading
from collections import OrderedDict

from runyard.compute.placing import Placement
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


class NodeQueue:
    """The first in line is never overtaken, so that a big request gets its turn."""

    def __init__(self, name: str, nodes: int) -> None:
        self._name = name
        self._nodes = nodes
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, Resources] = OrderedDict()
        self._turns: dict[str, int] = {}
        self._placed: dict[str, Placement] = {}

    def resize(self, nodes: int) -> None:
        """Runs that are there keep their nodes; a smaller cluster is reached as they leave."""
        with self._lock:
            self._nodes = nodes

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        if resources.nodes > self._nodes:
            raise ComputeTargetException(
                f"the run asks for {_count(resources.nodes)}; cluster {self._name!r} has {self._nodes} at most",
                hint=f"ask for {self._nodes} or fewer, or cluster.update(max_nodes={resources.nodes})"
                if self._nodes
                else "its max_nodes is 0: cluster.update(max_nodes=…)",
            )
        return resources, ()

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        with self._lock:
            if run_id in self._placed or run_id in self._waiting:
                return
            self._waiting[run_id] = resources
            self._turns[run_id] = max(self._turns.values(), default=0) + 1 if turn is None else turn
            for later in [other for other in self._waiting if self._turns[other] > self._turns[run_id]]:
                self._waiting.move_to_end(later)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        with self._lock:
            self._waiting.pop(run_id, None)
            self._placed.setdefault(run_id, placement)

    def leave(self, run_id: str) -> None:
        with self._lock:
            self._turns.pop(run_id, None)
            self._waiting.pop(run_id, None)
            self._placed.pop(run_id, None)

    def place(self) -> list[Placement]:
        placements = []
        with self._lock:
            while self._waiting:
                run_id, resources = next(iter(self._waiting.items()))
                free = self._free()
                if len(free) < resources.nodes:
                    break
                placements.append(self._place(run_id, free[: resources.nodes]))
        return placements

    def place_if_first(self, run_id: str) -> bool:
        with self._lock:
            first = next(iter(self._waiting), None)
            free = self._free()
            if first != run_id or len(free) < self._waiting[run_id].nodes:
                return False
            self._place(run_id, free[: self._waiting[run_id].nodes])
            return True

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def placements(self) -> dict[int, str]:
        """Node -> the run that has it."""
        with self._lock:
            return {node: placed.run_id for placed in self._placed.values() for node in placed.nodes}

    def waiting(self) -> list[str]:
        with self._lock:
            return list(self._waiting)

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._waiting]

    def reason(self, run_id: str) -> str:
        with self._lock:
            if run_id not in self._waiting:
                return ""
            place = f"position {list(self._waiting).index(run_id) + 1} of {len(self._waiting)}"
            holders = ", ".join(list(self._placed)[:3]) + (" and more" if len(self._placed) > 3 else "")
            busy = self._nodes - len(self._free())
            wanted = _count(self._waiting[run_id].nodes)
            return f"{place}; waiting for {wanted}; {busy} of {self._nodes} in use by {holders}"

    def _free(self) -> tuple[int, ...]:
        taken = {node for placed in self._placed.values() for node in placed.nodes}
        return tuple(node for node in range(self._nodes) if node not in taken)

    def _place(self, run_id: str, nodes: tuple[int, ...]) -> Placement:
        self._waiting.pop(run_id, None)
        placement = self._placed[run_id] = Placement(run_id, nodes=nodes)
        return placement


def _count(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"
