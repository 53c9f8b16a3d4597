"""Placement on nodes that are simulated on the yard's machine, each used by one run at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.compute.scheduling.queue import Placement, PlacementStrategy
from runyard.compute.scheduling.resource_ledger import count, name_some
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


class WholeNodes(PlacementStrategy):
    simulates_nodes = True

    def __init__(self, target: str, max_nodes: int) -> None:
        self._target, self._max_nodes = target, max_nodes
        self._held: dict[str, tuple[int, ...]] = {}

    def resize(self, nodes: int) -> None:
        self._max_nodes = nodes

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        check_max_nodes(resources.nodes, self._max_nodes, f"cluster {self._target!r}")
        return resources, ()

    def choose(self, run_id: str, resources: Resources) -> Placement | None:
        free = self._free()
        return None if len(free) < resources.nodes else Placement(run_id, nodes=free[: resources.nodes])

    def reserve(self, placement: Placement, resources: Resources) -> None:
        self._held[placement.run_id] = placement.nodes

    def release(self, run_id: str) -> None:
        self._held.pop(run_id, None)

    def missing(self, resources: Resources) -> str:
        busy = self._max_nodes - len(self._free())
        in_use = f"{busy} of {self._max_nodes} in use by {name_some(self._held)}"
        return f"waiting for {count(resources.nodes, 'node')}; {in_use}"

    def describe(self, placements: Sequence[Placement], waiting: Sequence[str]) -> dict[str, Any]:
        users = {node: placement.run_id for placement in placements for node in placement.nodes}
        indices = range(max([self._max_nodes, *(node + 1 for node in users)]))
        return {
            "nodes": [{"name": f"node-{index}", "run_id": users.get(index)} for index in indices],
            "waiting": list(waiting),
        }

    def _free(self) -> tuple[int, ...]:
        held = {node for nodes in self._held.values() for node in nodes}
        return tuple(index for index in range(self._max_nodes) if index not in held)


def check_max_nodes(requested: int, max_nodes: int, cluster: str) -> None:
    if requested > max_nodes:
        raise ComputeTargetException(
            f"the run requests {count(requested, 'node')}; {cluster} has at most {max_nodes}",
            hint=f"request {max_nodes} or fewer, or cluster.update(max_nodes={requested})"
            if max_nodes
            else "its max_nodes is 0: cluster.update(max_nodes=…)",
        )
