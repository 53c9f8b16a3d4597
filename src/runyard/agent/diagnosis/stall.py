"""Detects that a run makes no progress, and collects the stacks of its processes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard import clock
from runyard.agent.diagnosis.stacks import dump_stacks, is_waiting, summarize
from runyard.agent.event_log import EventLog
from runyard.agent.process.process_tree import find_processes
from runyard.agent.rendezvous.messaging import Messaging
from runyard.agent.rendezvous.peer_state import PeerState
from runyard.agent.supervise.rank_group import RankGroup
from runyard.context.format import HEADER_BYTES, RECORD_BYTES, SEGMENT_SUFFIX
from runyard.launch.order import WorkOrder
from runyard.launch.variables import PROCESS_TAG
from runyard.lifecycle.state import End, EndReason
from runyard.posix.atomic_write import write_bytes
from runyard.posix.regular_file import open_regular
from runyard.spec.folder import RunFolder

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE_CPU = 0.02  # share of a core per process that polling threads use
_REPLY_TIMEOUT_S = 15.0


class StallDetector:
    """Each node measures how long its processes have been idle; the lead decides when all nodes are idle."""

    def __init__(
        self,
        order: WorkOrder,
        folder: RunFolder,
        ranks: RankGroup,
        event_log: EventLog,
        peers: PeerState,
        messaging: Messaging,
    ) -> None:
        self._order, self._folder, self._ranks, self._event_log = order, folder, ranks, event_log
        self._peers, self._messaging = peers, messaging
        self._stall_after_s = order.stall_after_s or 0.0
        self._interval_s = poll_interval_s(self._stall_after_s)
        self._next_poll_at = clock.monotonic() + self._interval_s
        self._active_at = self._polled_at = clock.monotonic()
        self._written: object = None
        self._cpu_s = 0.0
        self._stacks: dict[int, str] = {}
        self._stacks_at = 0.0
        self._is_spinning = False  # processes use the CPU but stay at the same position
        self._request_number = 0
        self._requested_at: Optional[float] = None
        self._is_reported = False
        self._own_stacks: dict[str, str] = {}

    def poll(self) -> Optional[End]:
        """Returns the end of the run if it is configured to stop on a stall. Costs nothing between intervals."""
        if not self._stall_after_s:
            return None
        now = clock.monotonic()
        if now < self._next_poll_at and self._requested_at is None:
            return None
        self._next_poll_at = now + self._interval_s
        self._measure_activity(now)
        return self._decide(now) if self._order.node_rank == 0 else None

    def dump_stacks(self, number: int) -> None:
        """Write the stacks of this node's ranks; members send summaries to the lead, as reply to request ``number``."""
        with suppress(OSError):
            self._folder.stacks.mkdir(parents=True, exist_ok=True)
        self._own_stacks = {}
        for rank, text in self._dump().items():
            # atomic: the script may have put a pipe in its place, and opening that would block the agent
            with suppress(OSError):
                write_bytes(self._folder.stacks / f"rank_{rank}.txt", text.encode("utf-8", "replace"), mode=0o644)
            self._own_stacks[str(rank)] = summarize(text, self._folder.work)
        if self._order.node_rank:
            self._event_log.record("stacks", number=number, ranks=self._own_stacks)
            self._messaging.send("stacks", number=number, ranks=self._own_stacks)

    def _measure_activity(self, now: float) -> None:
        written = (_file_sizes(self._folder.logs), _journal_sizes(self._folder.journal))
        cpu_s = self._cpu_used_s()
        used_cpu = cpu_s - self._cpu_s > max((now - self._polled_at) * _IDLE_CPU * len(self._ranks.pids), 0.015)
        self._cpu_s, self._polled_at = cpu_s, now
        if written != self._written:
            self._written, self._is_spinning = written, False
            self._active_at = self._stacks_at = now
            self._stacks = {}
        elif used_cpu:
            if self._order.py_spy and now - self._stacks_at >= self._stall_after_s / 3:
                self._compare_stacks(now)
            if not self._is_spinning:
                self._active_at = now
        if now - self._active_at < self._interval_s:
            self._is_reported = False  # it continues: a later stall is a new one
        if self._order.node_rank:
            self._messaging.send("idle", seconds=now - self._active_at)

    def _compare_stacks(self, now: float) -> None:
        """Ranks that wait in MPI use the CPU fully: they are stuck if they stay in the same call that waits for others.

        A long computation stays in the same call as well, and is left alone.
        """
        stacks = {rank: summarize(text, self._folder.work) for rank, text in self._dump().items()}
        self._is_spinning = stacks == self._stacks and any(is_waiting(line) for line in stacks.values())
        self._stacks, self._stacks_at = stacks, now

    def _cpu_used_s(self) -> float:
        processes = find_processes(self._order.variables[PROCESS_TAG], os.getpid(), descendants_only=True)
        return sum(process.cpu_ticks for process in processes) / _TICKS_PER_S

    def _decide(self, now: float) -> Optional[End]:
        running = self._peers.running_nodes
        if self._requested_at is None:
            idle_s = min([now - self._active_at, *(self._peers.idle_s.get(node, 0.0) for node in running)])
            if idle_s >= self._stall_after_s and not self._is_reported:
                self._request_number, self._requested_at = self._request_number + 1, now
                self._peers.stacks.clear()
                self._messaging.send("dump_stacks", number=self._request_number)
                self.dump_stacks(self._request_number)
            return None
        replies = self._peers.stack_replies.get(self._request_number, set())
        if not replies.issuperset(running) and now < self._requested_at + _REPLY_TIMEOUT_S:
            return None
        self._requested_at, self._is_reported = None, True
        stacks = {**self._own_stacks, **self._peers.stacks}
        stacks = {rank: stacks[rank] for rank in sorted(stacks, key=int)}
        self._event_log.stalled(stacks)
        if self._order.stall_action != "stop":
            return None
        positions = "; ".join(f"rank {rank} {position}" for rank, position in stacks.items())
        message = f"no progress for {clock.duration_text(self._stall_after_s)}: {positions}; see logs/stalled"
        return End(EndReason.STALLED, message)

    def _dump(self) -> dict[int, str]:
        return dump_stacks(self._ranks.pids, self._order.py_spy)


def poll_interval_s(stall_after_s: float) -> float:
    return min(max(stall_after_s / 10, 0.2), 5.0)


def _file_sizes(folder: Path) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            return sorted((entry.name, entry.stat().st_size) for entry in files)
    except OSError:
        return []


def _journal_sizes(folder: Path) -> list[tuple[str, int]]:
    """Number of records in each segment. Segments are mapped at full size, so size and time are not informative."""
    return [(name, _record_count(folder / name)) for name, _ in _file_sizes(folder) if name.endswith(SEGMENT_SUFFIX)]


def _record_count(segment: Path) -> int:
    """Binary search for the first empty record: records are written one after the other over zeros."""
    try:
        file = open_regular(segment)
    except OSError:
        return 0
    try:
        low, high = 0, max(os.fstat(file).st_size - HEADER_BYTES, 0) // RECORD_BYTES
        while low < high:
            middle = (low + high) // 2
            if os.pread(file, RECORD_BYTES, HEADER_BYTES + middle * RECORD_BYTES).strip(b"\0"):
                low = middle + 1
            else:
                high = middle
        return low
    finally:
        os.close(file)
