"""``python -m runyard.agent.slurm_node order.json``: the agent on one node of a Slurm job.

The nodes of the job are known only here, so the order is completed with them. A signal that Runyard did not send came
from Slurm, which is then queried for the reason: preemption, a time limit or a failed node.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard.agent import main as agent
from runyard.agent.event_log import EventLog
from runyard.launch.order import Node, WorkOrder, read_order, write_order
from runyard.launch.private_variables import delivery_path, take_delivery
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder

_COMMAND_TIMEOUT_S = 20.0
# Variables of Slurm that scripts use. Not all of them: an `mpirun` or a framework that detects srun would look for
# processes that do not exist.
_PASSED_VARIABLES = (
    "SLURM_JOB_ID",
    "SLURM_JOB_PARTITION",
    "SLURM_CLUSTER_NAME",
    "SLURMD_NODENAME",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "TMPDIR",
)
_POSSIBLY_BY_SIGNAL = (EndReason.CANCELED, EndReason.KILLED, EndReason.NODE_LOST, EndReason.SCRIPT_FAILED)


def main(order_path: str) -> int:
    order = read_order(Path(order_path))
    node_rank = int(os.environ.get("SLURM_NODEID", "0")) if order.resources.nodes > 1 else 0
    node_folder = RunFolder(Path(order.folder)).node(node_rank)
    node_folder.root.mkdir(parents=True, exist_ok=True)
    completed = complete_order(order, node_rank, os.environ, list_nodes(order))
    private = take_delivery(delivery_path(RunFolder(Path(order.folder)), order.attempt, node_rank))
    write_order(node_folder.order, completed)
    return agent.main(str(node_folder.order), event_log_class=SlurmEventLog, private=private)


def complete_order(
    order: WorkOrder, node_rank: int, environment: Mapping[str, str], nodes: Sequence[Node]
) -> WorkOrder:
    passed = {name: environment[name] for name in _PASSED_VARIABLES if name in environment}
    return replace(order, node_rank=node_rank, nodes=tuple(nodes), variables={**order.variables, **passed})


def list_nodes(order: WorkOrder) -> list[Node]:
    """The nodes with their names in Slurm, in the order of the job's tasks."""
    if not order.nodes:
        return []
    if order.resources.nodes == 1:
        return [Node(os.environ.get("SLURMD_NODENAME") or socket.gethostname())]
    names = _run("scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]).split()
    facts = _run("scontrol", "--oneliner", "show", "node", os.environ["SLURM_JOB_NODELIST"])
    addresses = dict(re.findall(r"NodeName=(\S+).*?\bNodeAddr=(\S+)", facts))
    return [Node(name, _resolve(addresses.get(name, name))) for name in names]


class SlurmEventLog(EventLog):
    """Replaces the end reason if Slurm ended the job."""

    def script_ended(self, end: End) -> None:
        if end.reason in _POSSIBLY_BY_SIGNAL and not self._folder.stop.exists():
            end = explain_end(end, _job_facts())
        super().script_ended(end)


def explain_end(end: End, facts: Mapping[str, str]) -> End:
    """Use Slurm's reason if Slurm sent the signal; the end of a script that failed on its own is unchanged."""
    state, reason = facts.get("JobState", ""), facts.get("Reason", "")
    job = f"Slurm job {facts.get('JobId', '')}"
    if facts.get("PreemptTime", "None") not in ("None", "Unknown", "") or state == "PREEMPTED":
        return replace(
            end, reason=EndReason.PREEMPTED, message=f"{job} was preempted: its nodes were given to another job"
        )
    if state in ("TIMEOUT", "DEADLINE") or reason == "TimeLimit":
        limit = facts.get("TimeLimit", "")
        return replace(end, reason=EndReason.TIMED_OUT, message=f"{job} reached its time limit in Slurm, {limit}")
    if state in ("NODE_FAIL", "BOOT_FAIL") or reason == "NodeDown":
        return replace(end, reason=EndReason.NODE_LOST, message=f"{job} lost a node: {reason or state}")
    if end.reason in (EndReason.KILLED, EndReason.CANCELED) and state in ("CANCELLED", "COMPLETING"):
        return replace(end, reason=EndReason.CANCELED, message=f"{job} was canceled (scancel)")
    return end


def _job_facts() -> dict[str, str]:
    """Empty if Slurm does not respond: then the agent's own explanation is used."""
    with suppress(OSError, subprocess.SubprocessError, KeyError):
        output = _run("scontrol", "--oneliner", "show", "job", os.environ["SLURM_JOB_ID"])
        return dict(re.findall(r"(\w+)=(\S*)", output))
    return {}


def _run(*argv: str) -> str:
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=True)
    return result.stdout.decode("utf-8", "replace")


def _resolve(address: str) -> str:
    """Resolve the name here, on a node: it may not resolve outside of the cluster."""
    with suppress(OSError):
        return socket.gethostbyname(address)
    return address


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m runyard.agent.slurm_node order.json")
    sys.exit(main(sys.argv[1]))
