"""The lead's view of the other nodes, from their agents' messages."""

from __future__ import annotations

from typing import Any

from runyard import clock
from runyard.agent.rendezvous.messages import Message
from runyard.posix import procfs


class PeerState:
    def __init__(self) -> None:
        self.rank_ends: list[dict[str, Any]] = []
        self.processes_left: dict[int, int] = {}  # of each node that has ended
        self.idle_s: dict[int, float] = {}  # seconds without activity on each node
        self.stacks: dict[str, str] = {}  # position of each rank, from nodes that have sent their stacks
        self.stack_replies: dict[int, set[int]] = {}  # nodes that have answered each request
        self._registered: set[int] = set()
        self._clock_skew_s: dict[int, float] = {}  # our clock minus theirs

    def handle(self, node_rank: int, message: Message) -> None:
        if message["type"] == "register":
            self._registered.add(node_rank)
            has_our_clock = message["boot_id"] == procfs.boot_id()
            self._clock_skew_s[node_rank] = 0.0 if has_our_clock else clock.now() - message["now"]
        elif message["type"] == "rank_ended":
            for time in ("at", "wrote_at"):
                message["end"][time] += self._clock_skew_s.get(node_rank, 0.0)
            self.rank_ends.append(message["end"])
        elif message["type"] == "node_ended":
            self.processes_left[node_rank] = message["processes_left"]
        elif message["type"] == "idle":
            self.idle_s[node_rank] = message["seconds"]
        elif message["type"] == "stacks":
            self.stacks.update(message["ranks"])
            self.stack_replies.setdefault(message["number"], set()).add(node_rank)

    @property
    def running_nodes(self) -> list[int]:
        """Nodes that have registered and have not reported their end."""
        return sorted(self._registered - set(self.processes_left))
