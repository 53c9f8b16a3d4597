"""The queue of a target: first come, first served. A strategy decides where a run fits. No I/O."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runyard.compute.scheduling.fifo import Fifo
from runyard.launch.order import Node
from runyard.spec.resources import Resources

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Placement:
    run_id: str
    gpus: tuple[int, ...] = ()
    nodes: tuple[int, ...] = (0,)  # indices


class PlacementStrategy(ABC):
    """Tracks the resources of one target. Called by its queue, one call at a time."""

    assigns_gpus = False  # True: Placement.gpus are the only GPUs that a run may use
    simulates_nodes = False  # True: the nodes share the yard's machine and have no separate capacity

    @abstractmethod
    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """As ``Queue.fit``."""

    @abstractmethod
    def choose(self, run_id: str, resources: Resources) -> Placement | None:
        """Return a placement for a run; None if too little is free now."""

    @abstractmethod
    def reserve(self, placement: Placement, resources: Resources) -> None: ...

    @abstractmethod
    def release(self, run_id: str) -> None:
        """Free what a run holds; nothing happens if it holds nothing."""

    @abstractmethod
    def missing(self, resources: Resources) -> str:
        """Describe what is not free for a waiting run; "" if it only waits for the runs before it."""

    def waiting_reason(self, run_id: str) -> str:
        """The reason why a placed run has not started; "" if it has."""
        return ""

    def nodes(self, placement: Placement, *, is_gang: bool) -> tuple[Node, ...]:
        """Return names and addresses of the nodes for the run's order; none means one process on one machine."""
        return tuple(Node(f"node-{index}", LOOPBACK) for index in placement.nodes) if is_gang else ()

    def node_indices(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        """The inverse of ``nodes``, for the order of a run that an earlier yard started."""
        return tuple(int(node.name.rpartition("-")[2]) for node in nodes if node.name.startswith("node-")) or (0,)

    def resize(self, nodes: int) -> None:
        """Change the number of nodes. Runs keep the nodes they have; a smaller target is reached as they end."""
        raise NotImplementedError

    def describe(self, placements: Sequence[Placement], waiting: Sequence[str]) -> dict[str, Any]:
        """JSON facts for the target's status."""
        return {"runs": [*(placement.run_id for placement in placements), *waiting]}


class Queue:
    """First come, first served: the first run in the queue is never overtaken, so that a large request is not starved.

    Every method is thread-safe and may be repeated.
    """

    def __init__(self, strategy: PlacementStrategy) -> None:
        self.strategy = strategy  # its description of nodes and GPUs may be used by any thread
        self._lock = threading.Lock()
        self._waiting = Fifo()
        self._placed: dict[str, Placement] = {}

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """Return the resources that a run will get, with a warning for each difference from the request.

        Raises:
            ComputeTargetException: The run could never start on this target.
        """
        return self.strategy.fit(resources)

    def enqueue(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """Append a run, or insert it before those with a later ``turn``, which were only prepared faster.

        ``resources`` as returned by ``fit``.
        """
        with self._lock:
            if run_id not in self._placed and run_id not in self._waiting:
                self._waiting.add(run_id, resources, turn)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        """Reserve the resources of a run that an earlier yard placed and that still runs."""
        with self._lock:
            if run_id not in self._placed:
                self._place(placement, resources)

    def leave(self, run_id: str) -> None:
        """Remove a run from the queue, or free what it holds."""
        with self._lock:
            self._waiting.remove(run_id)
            self._placed.pop(run_id, None)
            self.strategy.release(run_id)

    def place(self) -> list[Placement]:
        """Place as many runs as fit, in their order. They hold their resources until they leave."""
        placements = []
        with self._lock:
            while (first := self._waiting.first) and (placement := self._place_first(*first)):
                placements.append(placement)
        return placements

    def place_if_first(self, run_id: str) -> bool:
        """Place this run if it is first in the queue and fits; return True if it was placed."""
        with self._lock:
            first = self._waiting.first
            return first is not None and first[0] == run_id and self._place_first(*first) is not None

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def runs(self) -> list[str]:
        """Ids of all runs that are placed or waiting."""
        with self._lock:
            return [*self._placed, *self._waiting]

    def waiting_reason(self, run_id: str) -> str:
        """Explain why a run has not started; "" if it is not waiting."""
        with self._lock:
            if run_id not in self._waiting:
                return self.strategy.waiting_reason(run_id)
            missing = self.strategy.missing(self._waiting.resources(run_id))
            return f"{self._waiting.position(run_id)}; {missing or 'waiting for its turn'}"

    def resize(self, nodes: int) -> None:
        with self._lock:
            self.strategy.resize(nodes)

    def describe(self) -> dict[str, Any]:
        """JSON facts for the target's status."""
        with self._lock:
            return self.strategy.describe(tuple(self._placed.values()), tuple(self._waiting))

    def _place_first(self, run_id: str, resources: Resources) -> Placement | None:
        placement = self.strategy.choose(run_id, resources)
        if placement is not None:
            self._place(placement, resources)
        return placement

    def _place(self, placement: Placement, resources: Resources) -> None:
        self.strategy.reserve(placement, resources)
        self._waiting.remove(placement.run_id)
        self._placed[placement.run_id] = placement
