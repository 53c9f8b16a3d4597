"""The ranks of a run on one node: starts them, and reports the end of each once."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard import clock
from runyard.agent.process.spawn import spawn
from runyard.launch.world import RankPlan
from runyard.lifecycle.state import End
from runyard.posix.regular_file import open_regular, read_range
from runyard.spec.folder import RunFolder

_MAX_REPORT_BYTES = 1 << 20


@dataclass(frozen=True)
class RankEnd:
    plan: RankPlan
    exit_code: int  # negative for a signal
    at: float


class RankGroup:
    """Ranks that the agent starts itself."""

    def __init__(self, ranks: Sequence[RankPlan], folder: RunFolder) -> None:
        self.ranks = {plan.rank: plan for plan in ranks}
        self.folder = folder
        self.pids: dict[int, int] = {}  # of the living ranks
        self.ended: set[int] = set()
        self.has_started = False  # True once a script runs on this node
        self._new_ends: list[RankEnd] = []

    def start(self) -> None:
        """Raises SpawnError."""
        for plan in self.ranks.values():
            log = str(self.folder.driver_log(plan.log_suffix))
            self.pids[plan.rank] = spawn(plan.argv, plan.variables, cwd=str(self.folder.work), log=log)
        self.has_started = bool(self.pids)

    def handle_exit(self, pid: int, exit_code: int) -> None:
        for rank, rank_pid in list(self.pids.items()):
            if rank_pid == pid:
                self.record_end(rank, exit_code)

    def handle_wakeup(self, lines: Sequence[str]) -> None:
        """Process lines from the wakeup pipe."""

    def run_daemon(self, command: str, prefix: str) -> None:
        """Run a command for the lead's launcher. ``prefix``: installation folder of the launcher on the lead."""

    def poll(self) -> None:
        """Inspect the living ranks; called regularly."""

    @property
    def success_warning(self) -> str:
        """A warning about a run that succeeded."""
        return ""

    def take_new_ends(self, *, is_last: bool = False) -> list[RankEnd]:
        """Ends since the last call. ``is_last``: there will be no further call."""
        ends, self._new_ends = self._new_ends, []
        return ends

    @property
    def has_ended(self) -> bool:
        return len(self.ended) == len(self.ranks)

    @property
    def launcher_succeeded(self) -> bool:
        """On the lead: False while the launcher of the ranks is running or if it has failed."""
        return True

    @property
    def failure(self) -> Optional[End]:
        """A failure other than that of a rank."""
        return None

    @property
    def launchers(self) -> Collection[int]:
        """Process ids to stop after the ranks."""
        return ()

    def record_end(self, rank: int, exit_code: int) -> None:
        if rank not in self.ended and rank in self.ranks:
            self.ended.add(rank)
            self.pids.pop(rank, None)
            self._new_ends.append(RankEnd(self.ranks[rank], exit_code, clock.now()))


def read_new_lines(path: Path, offset: int) -> tuple[list[str], int]:
    """The complete lines from ``offset`` on, and the offset of the next line."""
    try:
        file = open_regular(path)
    except OSError:
        return [], offset
    try:
        data = read_range(file, offset, _MAX_REPORT_BYTES)
    finally:
        os.close(file)
    complete = data[: data.rfind(b"\n") + 1]
    return complete.decode("utf-8", "replace").splitlines(), offset + len(complete)
