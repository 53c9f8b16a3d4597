"""What one agent of a run knows about the others: their locks and what they wrote."""

from __future__ import annotations

import fcntl
import json
from typing import Any

from runyard.agent.team import read_new
from runyard.spec.folder import RunFolder


class Others:
    """Read on from where it stopped, so that a look costs next to nothing."""

    def __init__(self, folder: RunFolder, node_ranks: list[int]) -> None:
        self._folder = folder
        self._read_to = dict.fromkeys(node_ranks, 0)
        self.ends: list[dict[str, Any]] = []  # rank_ended, as their agents wrote it
        self.left: dict[int, int] = {}  # processes left, of each node that has ended
        self.stacks: dict[str, str] = {}  # where each rank was, of nodes that were asked
        self.answers: dict[int, set[int]] = {}  # which nodes answered which question

    def look(self) -> None:
        for node_rank, offset in self._read_to.items():
            lines, self._read_to[node_rank] = read_new(self._folder.node(node_rank).events, offset)
            for line in lines:
                try:
                    said = json.loads(line)
                except ValueError:  # half a line of an agent that was killed while it wrote
                    continue
                if said["event"] == "rank_ended":
                    self.ends.append(said)
                elif said["event"] == "node_ended":
                    self.left[node_rank] = said["processes_left"]
                elif said["event"] == "stacks":
                    self.stacks.update(said["ranks"])
                    self.answers.setdefault(said["number"], set()).add(node_rank)

    def lost(self) -> list[int]:
        """Nodes whose agent is gone without a last word."""
        gone = [n for n in self._read_to if n not in self.left and is_free(self._folder.node(n))]
        if gone:
            self.look()  # an agent writes its last word before it goes: it may have done so since
        return [node_rank for node_rank in gone if node_rank not in self.left]

    @property
    def running(self) -> list[int]:
        return [node_rank for node_rank in self._read_to if node_rank not in self.left]


def is_free(folder: RunFolder) -> bool:
    try:
        with open(folder.agent_lock, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return False
