"""TensorFlow's cluster: who is where, told to every task in TF_CONFIG."""

from __future__ import annotations

import json
from dataclasses import dataclass

from runyard.launch.world import RankPlan, World
from runyard.spec.launch import ParameterServer


@dataclass(frozen=True)
class _Task:
    role: str
    index: int
    node: int
    place: int  # among the tasks of its node


def ranks(launch: ParameterServer, world: World) -> list[RankPlan]:
    tasks = _deal(launch, len(world.nodes))
    cluster: dict[str, list[str]] = {}
    for role in ("chief", "ps", "worker"):
        hosts = [
            f"{world.nodes[task.node].address}:{world.ports[task.node][task.place]}"
            for task in tasks
            if task.role == role
        ]
        if hosts:
            cluster[role] = hosts
    common = {
        "AZ_BATCHAI_PS_HOSTS": ",".join(cluster.get("ps", [])),
        "AZ_BATCHAI_WORKER_HOSTS": ",".join(cluster.get("chief", []) + cluster.get("worker", [])),
    }
    return [
        RankPlan(
            rank,
            task.role,
            task.index,
            task.node,
            task.place,
            variables={**common, "TF_CONFIG": _config(cluster, task), "AZ_BATCHAI_TASK_INDEX": str(task.index)},
            log_suffix=f"_{task.role}_{task.index}",
            decides=_decides(launch, task.role),
        )
        for rank, task in enumerate(tasks)
    ]


def _decides(launch: ParameterServer, role: str) -> bool:
    """Servers wait for ever, evaluators for the next checkpoint; so do the workers that a chief drives."""
    if launch.chief and launch.servers:
        return role == "chief"
    return role in ("chief", "worker")


def ports_needed(launch: ParameterServer, node_count: int, node_rank: int) -> int:
    return sum(1 for task in _deal(launch, node_count) if task.node == node_rank)


def _deal(launch: ParameterServer, node_count: int) -> list[_Task]:
    """Workers first, one node after the other, then the servers in the same turn: rank 0 is the first worker."""
    named = [("chief", 0)] if launch.chief else []
    named += [("worker", index) for index in range(launch.workers - len(named))]
    named += [("ps", index) for index in range(launch.servers)]
    named += [("evaluator", 0)] if launch.evaluator else []
    return [
        _Task(role, index, position % node_count, position // node_count)
        for position, (role, index) in enumerate(named)
    ]


def _config(cluster: dict[str, list[str]], task: _Task) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": task.role, "index": task.index}, "environment": "cloud"})
