"""The processes that one node carries for a run: started, and each one's end told once."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard import clock
from runyard.agent.process.spawn import start
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder


@dataclass(frozen=True)
class RankEnd:
    plan: RankPlan
    exit_code: int  # negative for a signal
    at: float


class Team:
    """Processes that the agent starts itself."""

    def __init__(self, ranks: Sequence[RankPlan], folder: RunFolder) -> None:
        self.ranks = {plan.rank: plan for plan in ranks}
        self.folder = folder
        self.pids: dict[int, int] = {}  # of each rank that lives
        self.ended: set[int] = set()
        self.has_begun = False  # the script runs somewhere on this node
        self._news: list[RankEnd] = []

    def begin(self) -> None:
        """Raises CannotStart."""
        for plan in self.ranks.values():
            log = str(self.folder.driver_log(plan.log_suffix))
            self.pids[plan.rank] = start(plan.argv, plan.variables, cwd=str(self.folder.work), log=log)
        self.has_begun = bool(self.pids)

    def reaped(self, pid: int, exit_code: int) -> None:
        for rank, known in list(self.pids.items()):
            if known == pid:
                self.end_of(rank, exit_code)

    def heard(self, lines: Sequence[str]) -> None:
        """What was written into the agent's bell."""

    def run(self, command: str, prefix: str) -> None:
        """What the lead's launcher wants started here. ``prefix``: where the launcher was installed there."""

    def look(self) -> None:
        """At the living ranks, every now and then."""

    @property
    def afterthought(self) -> str:
        """What to tell about a run that went well."""
        return ""

    def news(self, *, is_last: bool = False) -> list[RankEnd]:
        """Ends that were not told yet. ``is_last``: nothing more is waited for."""
        news, self._news = self._news, []
        return news

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.ranks)

    @property
    def may_end(self) -> bool:
        """On the first node, once every rank that counts has ended well: nobody has anything to add."""
        return True

    @property
    def trouble(self) -> Optional[End]:
        """What makes going on impossible, other than the end of a rank."""
        return None

    @property
    def launchers(self) -> Collection[int]:
        """To be stopped after the ranks."""
        return ()

    def end_of(self, rank: int, exit_code: int) -> None:
        if rank not in self.ended and rank in self.ranks:
            self.ended.add(rank)
            self.pids.pop(rank, None)
            self._news.append(RankEnd(self.ranks[rank], exit_code, clock.now()))


def read_new(path: Path, offset: int) -> tuple[list[str], int]:
    """The whole lines that were appended since, and where the next ones begin."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size <= offset:
                return [], offset
            file.seek(offset)
            data = file.read()
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace").splitlines(), offset + len(whole)
