"""What an agent is told: everything it needs to start, bound and end the processes of one run on one node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class WorkOrder:
    run_id: str
    folder: str  # root of the RunFolder
    argv: tuple[str, ...]  # $VARIABLES in arguments are expanded on the node, from `variables`
    variables: dict[str, str] = field(default_factory=dict)  # the whole environment of the process
    grace_s: float = 10.0
    max_run_duration_seconds: Optional[int] = None
    memory_limit_gb: float = 0.0  # 0 = none
    yard_socket: str = ""  # where to tell that there is news; the folder is read in any case
    stop_argv: tuple[str, ...] = ()  # run first when stopping (a container engine's own stop)
    gpus: tuple[int, ...] = ()  # what the queue gave, so that a yard which adopts the run can keep them taken
