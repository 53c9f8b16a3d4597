"""Determines which of several processes caused a run to fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from runyard.agent.diagnosis.exit_reason import error_line, explain_exit
from runyard.agent.diagnosis.log_tail import LogTail
from runyard.lifecycle.state import End

# Errors of a process that lost the connection to another one: sockets, gloo, NCCL, Horovod and gRPC.
_PEER_LOST = re.compile(
    r"Connection (?:reset|closed|refused|aborted)|closed by peer|Broken pipe|ConnectionResetError|BrokenPipeError"
    r"|remote process exited|DistBackendError|DistNetworkError|DistStoreError|HorovodInternalError|UnavailableError"
    r"|failed to connect|Socket Timeout",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Candidate:
    end: dict[str, Any]
    tail: LogTail
    wrote_at: float  # time of the last line in its log

    @property
    def lost_peer(self) -> bool:
        return bool(_PEER_LOST.search(self.tail.error or self.tail.last_line))


def find_root_cause(ends: Sequence[dict[str, Any]], until: float, count: int) -> Optional[End]:
    """The end of the run, explained by the process that failed first; None if none failed until then.

    A process that raised an error takes some time to exit, and one that lost the connection to it may exit earlier:
    in that case the cause is the process that had logged its own error before.

    Args:
        ends: The ends of processes as reported by the agents.
        until: Time of the decision to stop; later ends are those of processes that the agents stopped.
        count: Number of processes of the run.
    """
    failures = [end for end in ends if end["exit_code"] != 0]
    first_end = min((end for end in failures if end["at"] <= until), key=lambda end: float(end["at"]), default=None)
    if first_end is None:
        return None
    cause = first = _candidate(first_end)
    if first.end["exit_code"] > 0 and first.lost_peer:
        candidates = [_candidate(end) for end in failures if end is not first.end]
        independent = [c for c in candidates if c.tail.error and c.tail.is_final and not c.lost_peer]
        independent += [c for c in candidates if c.end["exit_code"] < 0 and c.end["at"] <= until]
        cause = min(independent, key=lambda c: c.wrote_at, default=first)
    end = cause.end
    # stopped by the agent while it was failing: its error counts, not our signal
    exit_code = 1 if end["at"] > until and end["exit_code"] < 0 else int(end["exit_code"])
    explained = explain_exit(exit_code, cause.tail, stop=None, oom_killed=bool(end["oom"]), processes_left=0)
    suffix = f" (exit code {exit_code})" if exit_code > 0 and error_line(exit_code, cause.tail) else ""
    message = f"{end['title']} on {end['node']}: {explained.message}{suffix}{_stopped_text(count - 1)}"
    return replace(explained, message=message, rank=end["rank"], node=end["node"])


def _stopped_text(count: int) -> str:
    if count == 0:
        return ""
    return "; the other process was stopped" if count == 1 else f"; the other {count} processes were stopped"


def _candidate(end: dict[str, Any]) -> _Candidate:
    tail = LogTail(**{**end["tail"], "lines": tuple(end["tail"]["lines"])})
    return _Candidate(end, tail, float(end["wrote_at"]))
