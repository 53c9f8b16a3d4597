"""``python -m runyard.agent.slurm_node order.json``: the agent of one node of a job of Slurm.

Which nodes the job was given is known only here: the order is completed with them. And a signal that nobody of the
run's own sent came from Slurm, which is asked why: it preempts, it ends jobs after their time, and nodes of it fail.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard.agent import main as hold
from runyard.agent.event_log import Report
from runyard.launch.order import Node, WorkOrder, read_order
from runyard.lifecycle.state import End, EndReason
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_ANSWER_S = 20.0
# What Slurm tells a job, and scripts ask for. Not all of it: an `mpirun` or a framework that believes itself to be
# started by srun looks for processes that are not there.
_HANDED_ON = (
    "SLURM_JOB_ID",
    "SLURM_JOB_PARTITION",
    "SLURM_CLUSTER_NAME",
    "SLURMD_NODENAME",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "TMPDIR",
)
_BY_A_SIGNAL = (EndReason.CANCELED, EndReason.KILLED, EndReason.NODE_LOST, EndReason.SCRIPT_FAILED)


def main(order_path: str) -> int:
    order = read_order(Path(order_path))
    node_rank = int(os.environ.get("SLURM_NODEID", "0")) if order.resources.nodes > 1 else 0
    own = RunFolder(Path(order.folder)).node(node_rank)
    own.root.mkdir(parents=True, exist_ok=True)
    write_text(own.order, json.dumps(to_json(completed(order, node_rank, os.environ, nodes_of(order)))))
    own.order.chmod(0o600)  # variables may hold what only the owner should read
    return hold.main(str(own.order), report=SlurmReport)


def completed(order: WorkOrder, node_rank: int, environment: Mapping[str, str], nodes: Sequence[Node]) -> WorkOrder:
    told = {name: environment[name] for name in _HANDED_ON if name in environment}
    return replace(order, node_rank=node_rank, nodes=tuple(nodes), variables={**order.variables, **told})


def nodes_of(order: WorkOrder) -> list[Node]:
    """By the names that Slurm has for them, in its order, which is that of the tasks."""
    if not order.nodes:
        return []
    if order.resources.nodes == 1:
        return [Node(os.environ.get("SLURMD_NODENAME") or socket.gethostname())]
    names = _ask("scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]).split()
    facts = _ask("scontrol", "--oneliner", "show", "node", os.environ["SLURM_JOB_NODELIST"])
    addresses = dict(re.findall(r"NodeName=(\S+).*?\bNodeAddr=(\S+)", facts))
    return [Node(name, _number(addresses.get(name, name))) for name in names]


class SlurmReport(Report):
    """Its last word says why Slurm ended the job, where it was Slurm."""

    def script_ended(self, end: End) -> None:
        if end.reason in _BY_A_SIGNAL and not self._folder.stop.exists():
            end = judged(end, _facts())
        super().script_ended(end)


def judged(end: End, facts: Mapping[str, str]) -> End:
    """Slurm knows best why it sent a signal; a script that failed by itself stays what it is."""
    state, reason = facts.get("JobState", ""), facts.get("Reason", "")
    job = f"job {facts.get('JobId', '')} of Slurm"
    if facts.get("PreemptTime", "None") not in ("None", "Unknown", "") or state == "PREEMPTED":
        return replace(end, reason=EndReason.PREEMPTED, message=f"{job} was preempted: its nodes went to another job")
    if state in ("TIMEOUT", "DEADLINE") or reason == "TimeLimit":
        limit = facts.get("TimeLimit", "")
        return replace(end, reason=EndReason.TIMED_OUT, message=f"{job} reached the time limit of Slurm, {limit}")
    if state in ("NODE_FAIL", "BOOT_FAIL") or reason == "NodeDown":
        return replace(end, reason=EndReason.NODE_LOST, message=f"{job} lost a node: {reason or state}")
    if end.reason in (EndReason.KILLED, EndReason.CANCELED) and state in ("CANCELLED", "COMPLETING"):
        return replace(end, reason=EndReason.CANCELED, message=f"{job} was canceled (scancel)")
    return end


def _facts() -> dict[str, str]:
    """Nothing, when Slurm does not answer: then the agent's own word has to do."""
    with suppress(OSError, subprocess.SubprocessError, KeyError):
        said = _ask("scontrol", "--oneliner", "show", "job", os.environ["SLURM_JOB_ID"])
        return dict(re.findall(r"(\w+)=(\S*)", said))
    return {}


def _ask(*words: str) -> str:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_S, check=True)
    return done.stdout.decode("utf-8", "replace")


def _number(address: str) -> str:
    """Slurm knows nodes by names that only resolve within the cluster, as here."""
    with suppress(OSError):
        return socket.gethostbyname(address)
    return address


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m runyard.agent.slurm_node order.json")
    sys.exit(main(sys.argv[1]))
