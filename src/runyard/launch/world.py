"""The nodes that a run was given, and one process on one of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from runyard.launch.order import Node


@dataclass(frozen=True)
class World:
    nodes: tuple[Node, ...]
    processes_per_node: int
    ports: tuple[tuple[str, ...], ...]  # reserved on each node; names instead of numbers before the start
    hosts: tuple[str, ...] = ()  # the names that the nodes' machines give themselves; none before the start

    @property
    def size(self) -> int:
        return len(self.nodes) * self.processes_per_node

    @property
    def is_on_one_machine(self) -> bool:
        """Nodes that are only played, or cannot be told apart by their host names, which comes to the same."""
        if len(self.nodes) < 2:
            return False
        return len({node.address for node in self.nodes}) == 1 or len(set(self.hosts)) < len(self.hosts)


@dataclass(frozen=True)
class RankPlan:
    rank: int  # of all processes of the run
    role: str  # "rank", "worker", "chief", "ps", "evaluator"
    index: int  # among those of its role
    node: int
    local_rank: int
    argv: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    log_suffix: str = ""
    decides: bool = True  # the run is over when all of these are; the others would go on for ever

    @property
    def title(self) -> str:
        return f"{self.role} {self.index}"
