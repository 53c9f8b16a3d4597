"""What the agent of a node may say to the others of its run, whichever it is."""

from __future__ import annotations

from typing import Any, Protocol

from runyard.agent.rendezvous.reliable_link import Message

REDIAL_S = 2.0  # whoever lives and was cut off by something between has come back by then


class Talk(Protocol):
    """Nothing here waits: ``SIGIO`` says when a look is worth while."""

    def say(self, do: str, **facts: Any) -> None:
        """To the lead; the lead's own are for everybody."""

    def say_to(self, node_rank: int, do: str, **facts: Any) -> None: ...

    def look(self) -> list[tuple[int, Message]]:
        """What came since, and from whom."""

    def lost(self) -> dict[int, str]:
        """The nodes that nobody will hear of again, each with how that is known."""

    def is_quiet(self, node_rank: int) -> bool:
        """Nothing was heard for so long that something may be wrong."""

    @property
    def is_delivered(self) -> bool:
        """Everything that was said has been heard."""

    def close(self) -> None: ...


class Alone:
    """A run of one node has nobody to talk to."""

    def say(self, do: str, **facts: Any) -> None:
        return

    def say_to(self, node_rank: int, do: str, **facts: Any) -> None:
        return

    def look(self) -> list[tuple[int, Message]]:
        return []

    def lost(self) -> dict[int, str]:
        return {}

    def is_quiet(self, node_rank: int) -> bool:
        return False

    @property
    def is_delivered(self) -> bool:
        return True

    def close(self) -> None:
        return
