"""Which process of several is to blame for the end of a run, and what to say of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runyard.agent.diagnosis.exit_reason import verdict
from runyard.agent.diagnosis.log_tail import LastWords
from runyard.lifecycle.state import End

# What a process says when another one is gone, in the words of sockets, gloo, NCCL, Horovod and gRPC.
_PEER_IS_GONE = re.compile(
    r"Connection (?:reset|closed|refused|aborted)|closed by peer|Broken pipe|ConnectionResetError|BrokenPipeError"
    r"|remote process exited|DistBackendError|DistNetworkError|DistStoreError|HorovodInternalError|UnavailableError"
    r"|failed to connect|Socket Timeout",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Suspect:
    end: dict[str, Any]
    words: LastWords
    wrote_at: float  # its log's last line

    @property
    def lost_a_peer(self) -> bool:
        return bool(_PEER_IS_GONE.search(self.words.error or self.words.last_line))


def blame(ends: Sequence[dict[str, Any]], until: float, count: int) -> End:
    """``ends`` as agents told them; those after ``until`` are of processes that we stopped.

    The first bad end counts. But a process which raised an error takes its time to end, and one that lost its
    connection to it may be faster: then the one that had written its own error before is to blame.
    """
    bad = [end for end in ends if end["exit_code"] != 0]
    first = _suspect(min((end for end in bad if end["at"] <= until), key=lambda end: float(end["at"])))
    guilty = first
    if first.end["exit_code"] > 0 and first.lost_a_peer:
        suspects = [_suspect(end) for end in bad if end is not first.end]
        own = [s for s in suspects if s.words.error and s.words.is_final and not s.lost_a_peer]
        own += [s for s in suspects if s.end["exit_code"] < 0 and s.end["at"] <= until]
        guilty = min(own, key=lambda s: s.wrote_at, default=first)
    end = guilty.end
    # stopped by us in the middle of its own failure: its words count, not our signal
    exit_code = 1 if end["at"] > until and end["exit_code"] < 0 else int(end["exit_code"])
    found = verdict(exit_code, guilty.words, stop=None, oom_killed=bool(end["oom"]), processes_left=0)
    how = f" (exit code {exit_code})" if exit_code > 0 and "exit code" not in found.message else ""
    message = f"{end['title']} on {end['node']}: {found.message}{how}{_others(count - 1)}"
    return replace(found, message=message, rank=end["rank"], node=end["node"])


def _others(count: int) -> str:
    if count == 0:
        return ""
    return "; the other process was stopped" if count == 1 else f"; the other {count} processes were stopped"


def _suspect(end: dict[str, Any]) -> _Suspect:
    words = LastWords(**{**end["words"], "lines": tuple(end["words"]["lines"])})
    return _Suspect(end, words, float(end["wrote_at"]))
