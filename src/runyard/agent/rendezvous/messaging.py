"""The interface by which an agent communicates with the other agents of its run."""

from __future__ import annotations

from typing import Any, Protocol

from runyard.agent.rendezvous.messages import Message

RECONNECT_S = 2.0  # an agent that lives reconnects within this time


class Messaging(Protocol):
    """All methods return immediately; ``SIGIO`` signals new messages."""

    def send(self, message_type: str, **values: Any) -> None:
        """Send a message to the lead; the lead sends to all nodes."""

    def send_to(self, node_rank: int, message_type: str, **values: Any) -> None: ...

    def receive(self) -> list[tuple[int, Message]]:
        """The messages since the last call, with the rank of the sending node."""

    def take_problems(self) -> list[tuple[int, str]]:
        """Reasons for which connections were ended here since the last call, with the rank of the other node."""

    def lost_nodes(self) -> dict[int, str]:
        """Nodes that are considered lost, with the evidence."""

    def misses_heartbeats(self, node_rank: int) -> bool:
        """True if the connection to the node may be broken."""

    @property
    def all_acknowledged(self) -> bool: ...

    @property
    def never_connected(self) -> bool:
        """True for a member that has not reached the lead yet."""

    @property
    def connect_error(self) -> str:
        """The error of the last attempt to reach the lead."""

    def close(self) -> None: ...


class NoPeers:
    """The messaging of a run on one node, which has no other agents."""

    all_acknowledged = True
    never_connected = False
    connect_error = ""

    def send(self, message_type: str, **values: Any) -> None:
        return

    def send_to(self, node_rank: int, message_type: str, **values: Any) -> None:
        return

    def receive(self) -> list[tuple[int, Message]]:
        return []

    def take_problems(self) -> list[tuple[int, str]]:
        return []

    def lost_nodes(self) -> dict[int, str]:
        return {}

    def misses_heartbeats(self, node_rank: int) -> bool:
        return False

    def close(self) -> None:
        return
