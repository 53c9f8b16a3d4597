"""Who may start on a cluster: whole nodes, first come, first served. No I/O."""

from __future__ import annotations

import threading

from runyard.compute.scheduling.fifo import Line
from runyard.compute.scheduling.queue import Placement
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


class NodeQueue:
    """The first in line is never overtaken, so that a big request gets its turn."""

    def __init__(self, name: str, nodes: int) -> None:
        self._name = name
        self._nodes = nodes
        self._lock = threading.Lock()
        self._line = Line()
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
            if run_id not in self._placed and run_id not in self._line:
                self._line.join(run_id, resources, turn)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        with self._lock:
            self._line.leave(run_id)
            self._placed.setdefault(run_id, placement)

    def leave(self, run_id: str) -> None:
        with self._lock:
            self._line.leave(run_id)
            self._placed.pop(run_id, None)

    def place(self) -> list[Placement]:
        placements = []
        with self._lock:
            while (first := self._line.first) and (placement := self._placed_now(*first)):
                placements.append(placement)
        return placements

    def place_if_first(self, run_id: str) -> bool:
        with self._lock:
            first = self._line.first
            return first is not None and first[0] == run_id and self._placed_now(*first) is not None

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def placements(self) -> dict[int, str]:
        """Node -> the run that has it."""
        with self._lock:
            return {node: placed.run_id for placed in self._placed.values() for node in placed.nodes}

    def waiting(self) -> list[str]:
        with self._lock:
            return list(self._line)

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._line]

    def reason(self, run_id: str) -> str:
        with self._lock:
            if run_id not in self._line:
                return ""
            holders = ", ".join(list(self._placed)[:3]) + (" and more" if len(self._placed) > 3 else "")
            busy = self._nodes - len(self._free())
            wanted = _count(self._line.asked(run_id).nodes)
            return f"{self._line.position(run_id)}; waiting for {wanted}; {busy} of {self._nodes} in use by {holders}"

    def _free(self) -> tuple[int, ...]:
        taken = {node for placed in self._placed.values() for node in placed.nodes}
        return tuple(node for node in range(self._nodes) if node not in taken)

    def _placed_now(self, run_id: str, resources: Resources) -> Placement | None:
        """Where the first in line goes; None: not enough nodes are free."""
        free = self._free()
        if len(free) < resources.nodes:
            return None
        self._line.leave(run_id)
        placement = self._placed[run_id] = Placement(run_id, nodes=free[: resources.nodes])
        return placement


def _count(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"
