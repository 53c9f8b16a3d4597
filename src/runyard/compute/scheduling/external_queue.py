"""Placement by the target's own scheduler: every run is submitted immediately and waits there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.compute.base import ExternalScheduler
from runyard.compute.scheduling.queue import Placement, PlacementStrategy
from runyard.compute.scheduling.whole_nodes import check_max_nodes
from runyard.spec.resources import Resources


class ExternalQueue(PlacementStrategy):
    """``max_nodes`` limits the nodes of a run further than the scheduler does."""

    def __init__(self, scheduler: ExternalScheduler, max_nodes: int | None = None) -> None:
        self._scheduler, self._max_nodes = scheduler, max_nodes

    def resize(self, nodes: int) -> None:
        self._max_nodes = nodes

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        if self._max_nodes is not None:
            check_max_nodes(resources.nodes, self._max_nodes, "the cluster")
        return self._scheduler.fit(resources)

    def choose(self, run_id: str, resources: Resources) -> Placement:
        # the scheduler decides later which nodes these are
        return Placement(run_id, nodes=tuple(range(resources.nodes)))

    def reserve(self, placement: Placement, resources: Resources) -> None:
        """The scheduler does this itself."""

    def release(self, run_id: str) -> None:
        """The scheduler does this itself."""

    def missing(self, resources: Resources) -> str:
        return ""

    def waiting_reason(self, run_id: str) -> str:
        return self._scheduler.waiting_reason(run_id)

    def describe(self, placements: Sequence[Placement], waiting: Sequence[str]) -> dict[str, Any]:
        facts = super().describe(placements, waiting)
        if self._max_nodes is not None:
            users = [placement.run_id for placement in placements for _ in placement.nodes]
            indices = range(max(self._max_nodes, len(users)))
            facts["nodes"] = [
                {"name": f"node-{index}", "run_id": users[index] if index < len(users) else None} for index in indices
            ]
            facts["waiting"] = [p.run_id for p in placements if self._scheduler.waiting_reason(p.run_id)]
        return facts
