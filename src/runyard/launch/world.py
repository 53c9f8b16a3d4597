"""The nodes of a run, and one process on one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runyard.launch.order import Node


@dataclass(frozen=True)
class World:
    nodes: tuple[Node, ...]
    processes_per_node: int
    ports: tuple[tuple[str, ...], ...]  # reserved on each node; placeholders before the start
    hosts: tuple[str, ...] = ()  # host names as reported by the machines; empty before the start

    @property
    def size(self) -> int:
        return len(self.nodes) * self.processes_per_node

    def positions(self) -> Iterator[tuple[int, int, int]]:
        """(rank, node, local rank) of all processes, filling one node after the other."""
        return ((rank, *divmod(rank, self.processes_per_node)) for rank in range(self.size))

    @property
    def is_on_one_machine(self) -> bool:
        """True for simulated nodes, and for nodes with the same host name, which need the same treatment."""
        if len(self.nodes) < 2:
            return False
        return len({node.address for node in self.nodes}) == 1 or len(set(self.hosts)) < len(self.hosts)


@dataclass(frozen=True)
class RankPlan:
    rank: int  # among all processes of the run
    role: str  # "rank", "worker", "chief", "ps", "evaluator"
    index: int  # among the processes of its role
    node: int
    local_rank: int
    argv: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    log_suffix: str = ""
    decides: bool = True  # the run ends when all deciding processes have ended; others may never end

    @property
    def title(self) -> str:
        return f"{self.role} {self.index}"
