"""A run in which nothing moves any more: seen, looked into, and told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

from runyard import clock
from runyard.agent.diagnosis.stacks import dump, is_waiting, summary
from runyard.agent.event_log import Report
from runyard.agent.process.process_tree import find
from runyard.agent.rendezvous.messaging import Talk
from runyard.agent.rendezvous.peer_state import Others
from runyard.agent.supervise.rank_group import Team
from runyard.launch.order import WorkOrder
from runyard.launch.variables import PROCESS_TAG
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = 0.02  # of a processor for each process: threads that only look whether there is something to do
_ANSWERS_S = 15.0
_RECORD, _HEADER = 32, 256  # of a metrics journal


class Standstill:
    """Each node measures how long its own processes have been quiet; the lead judges when all have."""

    def __init__(
        self,
        order: WorkOrder,
        folder: RunFolder,
        team: Team,
        report: Report,
        others: Others,
        talk: Talk,
    ) -> None:
        self._order, self._folder, self._team, self._report = order, folder, team, report
        self._others, self._talk = others, talk
        self._after_s = order.stall_after_s or 0.0
        self._every_s = look_every_s(self._after_s)
        self._next_look = clock.monotonic() + self._every_s
        self._moved_at = self._looked_at = clock.monotonic()
        self._written: object = None
        self._cpu_s = 0.0
        self._stacks: dict[int, str] = {}
        self._stacks_at = 0.0
        self._is_stuck = False  # processes use the processor and are where they were
        self._asked = 0
        self._asked_at: Optional[float] = None
        self._is_told = False
        self._own: dict[str, str] = {}

    def look(self) -> Optional[End]:
        """The end of the run when it is to end by this; costs nothing between its looks."""
        if not self._after_s:
            return None
        now = clock.monotonic()
        if now < self._next_look and self._asked_at is None:
            return None
        self._next_look = now + self._every_s
        self._take_pulse(now)
        return self._judge(now) if self._order.node_rank == 0 else None

    def answer(self, number: int) -> None:
        """The lead asks where everybody is."""
        self._folder.stacks.mkdir(parents=True, exist_ok=True)
        self._own = {}
        for rank, text in self._dump().items():
            (self._folder.stacks / f"rank_{rank}.txt").write_text(text, encoding="utf-8", errors="replace")
            self._own[str(rank)] = summary(text, self._folder.work)
        if self._order.node_rank:
            self._report.note("stacks", number=number, ranks=self._own)
            self._talk.say("stacks", number=number, ranks=self._own)

    def _take_pulse(self, now: float) -> None:
        written = (_sizes(self._folder.logs), _journals(self._folder.journal))
        cpu_s = self._cpu_used()
        worked = cpu_s - self._cpu_s > max((now - self._looked_at) * _IDLE * len(self._team.pids), 0.015)
        self._cpu_s, self._looked_at = cpu_s, now
        if written != self._written:
            self._written, self._is_stuck = written, False
            self._moved_at = self._stacks_at = now
            self._stacks = {}
        elif worked:
            if self._order.py_spy and now - self._stacks_at >= self._after_s / 3:
                self._compare_stacks(now)
            if not self._is_stuck:
                self._moved_at = now
        if now - self._moved_at < self._every_s:
            self._is_told = False  # it goes on: a later standstill is a new one
        if self._order.node_rank:
            self._talk.say("pulse", quiet_s=now - self._moved_at)

    def _compare_stacks(self, now: float) -> None:
        """Ranks that wait in MPI do so at full speed: they are stuck when they stay where they are, and it is a call
        that waits for others. A long computation stays where it is as well, and is left alone."""
        stacks = {rank: summary(text, self._folder.work) for rank, text in self._dump().items()}
        self._is_stuck = stacks == self._stacks and any(is_waiting(line) for line in stacks.values())
        self._stacks, self._stacks_at = stacks, now

    def _cpu_used(self) -> float:
        total = 0
        for process in find(self._order.variables[PROCESS_TAG], os.getpid(), everywhere=False):
            try:
                fields = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()
                total += int(fields[11]) + int(fields[12])
            except OSError:
                continue
        return total / _TICKS

    def _judge(self, now: float) -> Optional[End]:
        if self._asked_at is None:
            quiet_s = min(
                [now - self._moved_at, *(self._others.quiet_s.get(node, 0.0) for node in self._others.running)]
            )
            if quiet_s >= self._after_s and not self._is_told:
                self._asked, self._asked_at = self._asked + 1, now
                self._others.stacks.clear()
                self._talk.say("where", number=self._asked)
                self.answer(self._asked)
            return None
        if (
            self._others.running != []
            and not self._others.answers.get(self._asked, set()).issuperset(self._others.running)
            and now < self._asked_at + _ANSWERS_S
        ):
            return None
        self._asked_at, self._is_told = None, True
        ranks = {**self._own, **self._others.stacks}
        ordered = {rank: ranks[rank] for rank in sorted(ranks, key=int)}
        self._report.stalled(ordered)
        if self._order.stall_action != "stop":
            return None
        waits = "; ".join(f"rank {rank} {where}" for rank, where in ordered.items())
        message = f"nothing moved for {clock.duration_text(self._after_s)}: {waits}; see logs/stalled"
        return End(EndReason.STALLED, message)

    def _dump(self) -> dict[int, str]:
        return dump(self._team.pids, self._order.py_spy)


def look_every_s(after_s: float) -> float:
    return min(max(after_s / 10, 0.2), 5.0)


def _sizes(folder: Path) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.stat().st_size) for entry in entries if entry.is_file())
    except OSError:
        return []


def _journals(folder: Path) -> list[tuple[str, int]]:
    """How far each is written. They are mapped into memory with their full size, so size and time tell nothing."""
    return [(name, _written_to(folder / name)) for name, _ in _sizes(folder) if name.endswith(".seg")]


def _written_to(segment: Path) -> int:
    """Records are written one after the other over zeros."""
    try:
        with open(segment, "rb") as file:
            low, high = 0, max(os.fstat(file.fileno()).st_size - _HEADER, 0) // _RECORD
            while low < high:
                middle = (low + high) // 2
                if os.pread(file.fileno(), _RECORD, _HEADER + middle * _RECORD).strip(b"\0"):
                    low = middle + 1
                else:
                    high = middle
            return low
    except OSError:
        return 0
