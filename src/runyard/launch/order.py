"""What an agent is told: everything it needs to start, bound and end the processes of one run on one node."""

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
    address: str = "127.0.0.1"  # where the other nodes reach it


@dataclass(frozen=True)
class WorkOrder:
    run_id: str
    folder: str  # root of the RunFolder
    argv: tuple[str, ...]  # of one process; $VARIABLES in arguments are expanded on the node, from `variables`
    variables: dict[str, str] = field(default_factory=dict)  # the whole environment of the process
    grace_s: float = 10.0
    max_run_duration_seconds: Optional[int] = None
    memory_limit_gb: float = 0.0  # 0 = none
    doorbell: str = ""  # where to tell that there is news; the folder is read in any case
    stop_argv: tuple[str, ...] = ()  # run first when stopping (a container engine's own stop)
    gpus: tuple[int, ...] = ()  # what the queue gave, so that a yard which adopts the run can keep them taken
    node_rank: int = 0  # which of `nodes` this order is for
    nodes: tuple[Node, ...] = ()  # all of the run; none means this machine alone
    resources: Resources = field(default_factory=Resources)  # what a target's own scheduler is asked for
    launch: Launch = field(default_factory=Single)
    processes_per_node: int = 1
    mpirun: str = ""  # the program; "" = none was found
    stall_after_s: Optional[float] = None  # None: nobody watches for a standstill
    stall_action: str = "report"  # or "stop"
    py_spy: str = ""  # the program; "" = none
    attempt: int = 1  # the same folder may see several, one after the other
    secret: str = ""  # shared by the agents of the run, and never sent; "" = this node is the only one
    lead: str = ""  # "host:port" of the lead's agent where it is known beforehand; "" = it is in the run's folder
    patience_s: float = 90.0  # how long the agents bear each other's silence, as when a network is cut
    read_only: tuple[str, ...] = ()  # what the processes may read but not write, where the machine can see to it
    retried_for: str = ""  # how the attempt before this one ended: "node lost (n3)"

    @property
    def is_gang(self) -> bool:
        """Several processes that must live and end together."""
        return len(self.nodes) > 1 or not isinstance(self.launch, Single)


def read_order(path: Path) -> WorkOrder:
    """Raises OSError and ValueError."""
    return parse_order(path.read_bytes())


def parse_order(text: bytes) -> WorkOrder:
    """What is not known is passed over: a run that goes on may have its order from a yard of another version."""
    known = {one.name for one in fields(WorkOrder)}
    return from_json(WorkOrder, {name: value for name, value in json.loads(text).items() if name in known})
