"""TensorFlow clusters: TF_CONFIG and the related variables of every task."""

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
    position: int  # among the tasks of its node


def ranks(launch: ParameterServer, world: World) -> list[RankPlan]:
    tasks = _assign_tasks(launch, len(world.nodes))
    cluster: dict[str, list[str]] = {}
    for role in ("chief", "ps", "worker"):
        hosts = [
            f"{world.nodes[task.node].address}:{world.ports[task.node][task.position]}"
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
            task.position,
            variables={**common, "TF_CONFIG": _config(cluster, task), "AZ_BATCHAI_TASK_INDEX": str(task.index)},
            log_suffix=f"_{task.role}_{task.index}",
            decides=_decides(launch, task.role),
        )
        for rank, task in enumerate(tasks)
    ]


def _decides(launch: ParameterServer, role: str) -> bool:
    """True if the run waits for this role. Servers and evaluators never end, nor do workers driven by a chief."""
    if launch.chief and launch.servers:
        return role == "chief"
    return role in ("chief", "worker")


def ports_needed(launch: ParameterServer, node_count: int, node_rank: int) -> int:
    return sum(1 for task in _assign_tasks(launch, node_count) if task.node == node_rank)


def _assign_tasks(launch: ParameterServer, node_count: int) -> list[_Task]:
    """Distribute workers, then servers, round-robin over the nodes; rank 0 is the first worker."""
    tasks = [("chief", 0)] if launch.chief else []
    tasks += [("worker", index) for index in range(launch.workers - len(tasks))]
    tasks += [("ps", index) for index in range(launch.servers)]
    tasks += [("evaluator", 0)] if launch.evaluator else []
    return [
        _Task(role, index, position % node_count, position // node_count)
        for position, (role, index) in enumerate(tasks)
    ]


def _config(cluster: dict[str, list[str]], task: _Task) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": task.role, "index": task.index}, "environment": "cloud"})
