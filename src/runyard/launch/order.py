"""Work orders: all that an agent needs to start, limit and stop the processes of a run on one node."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Optional

from runyard.spec.json import from_json
from runyard.spec.launch import Launch, Single
from runyard.spec.resources import Resources


@dataclass(frozen=True)
class Node:
    name: str
    address: str = "127.0.0.1"  # at which the other nodes reach it


@dataclass(frozen=True)
class WorkOrder:
    run_id: str
    folder: str  # root of the RunFolder
    argv: tuple[str, ...]  # of one process; $VARIABLES in arguments are expanded on the node
    variables: dict[str, str] = field(default_factory=dict)  # the complete environment of the process
    grace_s: float = 10.0
    max_run_duration_seconds: Optional[int] = None
    memory_limit_gb: float = 0.0  # 0 = none
    notify_socket: str = ""  # where to send notifications about changes in the folder; optional
    stop_argv: tuple[str, ...] = ()  # command to run first when stopping, such as `docker stop`
    gpus: tuple[int, ...] = ()  # allocated by the queue, for a yard that restarts and must reserve them again
    node_rank: int = 0  # index in `nodes` of the node that this order is for
    nodes: tuple[Node, ...] = ()  # all nodes of the run; empty: this machine only
    resources: Resources = field(default_factory=Resources)  # the request to the target's own scheduler
    launch: Launch = field(default_factory=Single)
    processes_per_node: int = 1
    mpirun: str = ""  # path of the program; "" if not found
    stall_after_s: Optional[float] = None  # None: do not detect stalls
    stall_action: str = "report"  # or "stop"
    py_spy: str = ""  # path of the program; "" if not installed
    attempt: int = 1  # all attempts of a run share its folder
    secret: str = ""  # shared by the agents of the run, never sent; "" for a single node
    lead: str = ""  # "host:port" of the lead agent; "" = read it from the run's folder
    peer_timeout_s: float = 90.0  # silence after which agents consider each other lost
    read_only: tuple[str, ...] = ()  # paths to mount read-only, if the machine allows it
    retry_reason: str = ""  # end of the previous attempt, for the log: "node lost (n3)"
    lost_node: str = ""  # the node whose loss ended the previous attempt

    @property
    def is_gang(self) -> bool:
        """True if several processes must run and end together."""
        return len(self.nodes) > 1 or not isinstance(self.launch, Single)


def read_order(path: Path) -> WorkOrder:
    """Raises OSError and ValueError."""
    return parse_order(path.read_bytes())


def parse_order(text: bytes) -> WorkOrder:
    """Unknown fields are ignored: the order of a running run may come from another version of Runyard."""
    names = {field.name for field in fields(WorkOrder)}
    return from_json(WorkOrder, {name: value for name, value in json.loads(text).items() if name in names})
