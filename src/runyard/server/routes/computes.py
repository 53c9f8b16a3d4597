"""Compute targets: create, list, update, delete, and their status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from runyard.compute.registry import Target
from runyard.compute.scheduling.node_queue import NodeQueue
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.login_node import LoginCompute
from runyard.compute.slurm.queue import HandedOver
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response


@dataclass(frozen=True)
class NewCompute:
    name: str
    kind: str
    configuration: dict[str, Any]


@dataclass(frozen=True)
class ChangeCompute:
    min_nodes: int | None = None
    max_nodes: int | None = None
    idle_seconds_before_scaledown: int | None = None


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["computes"])
    targets = conductor.components.targets

    @router.get("/computes")
    def computes() -> Response:
        return json_response(computes_view(conductor))

    @router.post("/computes")
    def create(request: NewCompute) -> Response:
        return json_response(_view(targets.create(request.name, request.kind, request.configuration)))

    @router.get("/computes/{name}")
    def compute(name: str) -> Response:
        return json_response(_view(targets.get(name)))

    @router.patch("/computes/{name}")
    def change(name: str, request: ChangeCompute) -> Response:
        changed = targets.update(name, vars(request))
        conductor.place_waiting(changed)  # a larger cluster may have room for who waits
        return json_response(_view(changed))

    @router.delete("/computes/{name}", status_code=204)
    def delete(name: str) -> Response:
        targets.delete(name)
        return Response(status_code=204)

    return router


def computes_view(conductor: Conductor) -> list[dict[str, Any]]:
    return [_view(target) for target in conductor.components.targets.all()]


def _view(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "kind": target.kind,
        "configuration": target.configuration,
        "created_at": target.created_at,
        "status": _status(target),
    }


def _status(target: Target) -> dict[str, Any]:
    queue = target.queue
    if isinstance(queue, NodeQueue):
        taken = queue.placements()
        nodes = range(max([target.configuration["max_nodes"], *(node + 1 for node in taken)]))
        return {
            "nodes": [{"name": f"node-{node}", "run_id": taken.get(node)} for node in nodes],
            "waiting": queue.waiting(),
        }
    capacity = target.compute.capacity()
    found: dict[str, Any] = {
        "cpus": capacity.cpus,
        "memory_gb": capacity.memory_gb,
        "gpus": [str(gpu) for gpu in capacity.gpus],
        "runs": queue.runs(),
    }
    jobs = target.compute.jobs if isinstance(target.compute, LoginCompute) else target.compute
    if isinstance(jobs, SlurmCompute):
        found.update(_of_partition(target, jobs))
    return found


def _of_partition(target: Target, compute: SlurmCompute) -> dict[str, Any]:
    """How the partition stands; of an AmlCompute that is one, the nodes that its runs have been given."""
    there = compute.partition()
    found: dict[str, Any] = {"partition": compute.options.partition, "answers": there is not None}
    if there is not None:
        found.update(node_count=there.nodes, time_limit=there.time_limit)
    if isinstance(target.queue, HandedOver) and "max_nodes" in target.configuration:
        placed = target.queue.placements()
        used = [run_id for run_id, placement in placed.items() for _ in placement.nodes]
        names = range(max(int(target.configuration["max_nodes"]), len(used)))
        found["nodes"] = [{"name": f"node-{n}", "run_id": used[n] if n < len(used) else None} for n in names]
        found["waiting"] = [run_id for run_id in placed if compute.waiting_for(run_id)]
    return found
