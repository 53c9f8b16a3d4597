"""What the lead of a run knows about the other nodes: what their agents told it."""

from __future__ import annotations

import fcntl
from typing import Any

from runyard import clock
from runyard.agent.host_identity import MACHINE
from runyard.agent.rendezvous.reliable_link import Message
from runyard.spec.folder import RunFolder


class Others:
    def __init__(self) -> None:
        self.ends: list[dict[str, Any]] = []  # rank_ended
        self.left: dict[int, int] = {}  # processes left, of each node that has ended
        self.quiet_s: dict[int, float] = {}  # how long nothing has moved on each node
        self.stacks: dict[str, str] = {}  # where each rank was, of nodes that were asked
        self.answers: dict[int, set[int]] = {}  # which nodes answered which question
        self._present: set[int] = set()
        self._skew_s: dict[int, float] = {}  # how far our clock is ahead of theirs

    def hear(self, node_rank: int, said: Message) -> None:
        if said["do"] == "hello":
            self._present.add(node_rank)
            self._skew_s[node_rank] = 0.0 if said["machine"] == MACHINE else clock.now() - said["now"]
        elif said["do"] == "rank_ended":
            said["end"]["at"] += self._skew_s.get(node_rank, 0.0)
            said["end"]["wrote_at"] += self._skew_s.get(node_rank, 0.0)
            self.ends.append(said["end"])
        elif said["do"] == "node_ended":
            self.left[node_rank] = said["processes_left"]
        elif said["do"] == "pulse":
            self.quiet_s[node_rank] = said["quiet_s"]
        elif said["do"] == "stacks":
            self.stacks.update(said["ranks"])
            self.answers.setdefault(said["number"], set()).add(node_rank)

    @property
    def running(self) -> list[int]:
        """Those that came and have not had their last word."""
        return sorted(self._present - set(self.left))


def is_free(folder: RunFolder) -> bool:
    """Whether an agent was here, on a file system that both see, and is not any more."""
    try:
        with open(folder.agent_lock, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except OSError:
        return False
