"""Work orders: all that an agent needs to start, limit and stop the processes of a run on one node."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Optional

from runyard.errors import RunyardException
from runyard.posix.atomic_write import write_text
from runyard.posix.regular_file import read_regular
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Launch, Single
from runyard.spec.redaction import MASK
from runyard.spec.resources import Resources
from runyard.spec.strict_json import parse_json

_MAX_BYTES = 1 << 26  # the environment of a process may be large


@dataclass(frozen=True)
class Node:
    name: str
    address: str = "127.0.0.1"  # at which the other nodes reach it


@dataclass(frozen=True)
class WorkOrder:
    run_id: str
    folder: str  # root of the RunFolder
    argv: tuple[str, ...]  # of one process; $VARIABLES in arguments are expanded on the node
    variables: dict[str, str] = field(default_factory=dict)  # of the process, with `private` its complete environment
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
    # variables that are delivered to the agent's memory and not written to its order: secrets, and those of the machine
    private: dict[str, str] = field(default_factory=dict, repr=False)
    secret_variables: tuple[str, ...] = ()  # names of those in `private` whose values must not be shown

    @property
    def is_gang(self) -> bool:
        """True if several processes must run and end together."""
        return len(self.nodes) > 1 or not isinstance(self.launch, Single)


def write_order(path: Path, order: WorkOrder) -> None:
    """Write an order without its private variables. Only its owner can read the file."""
    write_text(path, order_text(order))


def order_text(order: WorkOrder) -> str:
    return json.dumps(to_json(replace(order, private={})))


def masked_variables(order: WorkOrder) -> dict[str, str]:
    """The variables for display: those of the machine are left out, secret values are masked."""
    return {**order.variables, **dict.fromkeys(order.secret_variables, MASK)}


def read_order(path: Path) -> WorkOrder:
    """Raises OSError and ValueError; the run's script may have replaced the file."""
    return parse_order(read_regular(path, _MAX_BYTES))


def read_attempt(path: Path) -> int:
    """The attempt that an order is for; 0 if there is no order, or it is damaged."""
    try:
        return parse_order(read_regular(path, _MAX_BYTES)).attempt
    except (OSError, ValueError):
        return 0


def parse_order(text: bytes) -> WorkOrder:
    """Unknown fields are ignored: the order of a running run may come from another version of Runyard.

    Raises only ValueError.
    """
    values = parse_json(text, max_bytes=_MAX_BYTES)
    names = {field.name for field in fields(WorkOrder)}
    try:
        order = from_json(WorkOrder, {name: value for name, value in values.items() if name in names})
    except (RunyardException, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a work order: {error}") from error
    if type(order.attempt) is not int or None in (order.run_id, order.folder, order.argv):
        raise ValueError("not a work order: a field is null")
    return order
