"""Detects that the agent of another node died before it connected, when no connection can show it yet.

On one machine the kernel shows it: an agent holds the lock in its node's folder while it lives. For an agent on
another machine, the process that started it there writes ``lost.json`` into that folder.
"""

from __future__ import annotations

import ipaddress
from contextlib import suppress

from runyard import clock
from runyard.launch.order import WorkOrder, read_attempt
from runyard.posix import file_lock
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.strict_json import parse_json

_INTERVAL_S = 0.05
_REFRESH_S = 1.0
_MAX_BYTES = 4096


class AgentWatch:
    def __init__(self, order: WorkOrder, folder: RunFolder) -> None:
        self._order, self._folder = order, folder
        self._check_at: dict[int, float] = {}  # by rank of the node
        self._refresh_at: dict[int, float] = {}
        self._evidence: dict[int, str] = {}

    def death_evidence(self, node_rank: int) -> str:
        """Description of the death of that node's agent in this attempt; "" if it is alive or has not started yet."""
        now = clock.monotonic()
        if node_rank not in self._evidence and now >= self._check_at.get(node_rank, 0.0):
            self._check_at[node_rank] = now + _INTERVAL_S
            evidence = self._check(node_rank)
            if evidence:
                self._evidence[node_rank] = evidence
        return self._evidence.get(node_rank, "")

    def _check(self, node_rank: int) -> str:
        node = self._folder.node(node_rank)
        if _is_loopback(self._order.nodes[node_rank].address):
            if agent_has_died(node, self._order.attempt):
                return "its agent died before it connected"
        else:  # file locks of another machine are not visible on every network file system
            self._refresh(node_rank, node)
        return _reported_death(node, self._order.attempt)

    def _refresh(self, node_rank: int, node: RunFolder) -> None:
        now = clock.monotonic()
        if now >= self._refresh_at.setdefault(node_rank, now + _REFRESH_S):
            self._refresh_at[node_rank] = now + _REFRESH_S
            refresh_folder(node, self._order.node_rank)


def agent_has_died(node: RunFolder, attempt: int) -> bool:
    """True if an agent of this attempt has taken the lock of its node's folder, on this machine, and is gone.

    The lock file is written only while the lock is held, and after the order. An empty or older one is that of an
    agent that is about to take the lock. Targets empty the file before the next attempt: times alone would mislead
    after the clock was set back.
    """
    try:
        lock = node.agent_lock.stat()
        has_started = lock.st_size > 0 and lock.st_mtime_ns >= node.order.stat().st_mtime_ns
        if not has_started or file_lock.is_held(node.agent_lock):
            return False
    except OSError:
        return False
    return read_attempt(node.order) == attempt


def refresh_folder(folder: RunFolder, node_rank: int) -> None:
    """Change the folder: a network file system caches for half a minute that a file is missing, unless its folder
    changes. ``node_rank`` is that of the caller: all nodes may do this at the same time."""
    file = folder.root / f"look.{node_rank}"
    with suppress(OSError):
        file.touch()
        file.unlink()


def _reported_death(node: RunFolder, attempt: int) -> str:
    try:
        report = parse_json(read_regular(node.lost, _MAX_BYTES), max_bytes=_MAX_BYTES)
    except (OSError, ValueError):
        return ""
    if not isinstance(report, dict) or report.get("attempt") != attempt:  # of an earlier attempt
        return ""
    return str(report.get("evidence") or "its agent has died")[:200]


def _is_loopback(address: str) -> bool:
    """True if the node is on this machine: simulated nodes, and several Slurm nodes on one machine."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False
