"""Compute targets: this machine, and clusters of nodes on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from runyard.compute.node_queue import NodeQueue
from runyard.compute.targets import Target
from runyard.orchestrator.conductor import Conductor
from runyard.server.answers import answer


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
    targets = conductor.rooms.targets

    @router.get("/computes")
    def computes() -> Response:
        return answer(computes_view(conductor))

    @router.post("/computes")
    def create(request: NewCompute) -> Response:
        return answer(_view(targets.create(request.name, request.kind, request.configuration)))

    @router.get("/computes/{name}")
    def compute(name: str) -> Response:
        return answer(_view(targets.get(name)))

    @router.patch("/computes/{name}")
    def change(name: str, request: ChangeCompute) -> Response:
        changed = targets.update(name, vars(request))
        conductor.place_waiting(changed)  # a larger cluster may have room for who waits
        return answer(_view(changed))

    @router.delete("/computes/{name}", status_code=204)
    def delete(name: str) -> Response:
        targets.delete(name)
        return Response(status_code=204)

    return router


def computes_view(conductor: Conductor) -> list[dict[str, Any]]:
    return [_view(target) for target in conductor.rooms.targets.all()]


def _view(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "kind": target.kind,
        "configuration": target.configuration,
        "created_at": target.created_at,
        "status": _status(target),
    }


def _status(target: Target) -> dict[str, Any]:
    if isinstance(target.queue, NodeQueue):
        taken = target.queue.placements()
        nodes = range(max([target.configuration["max_nodes"], *(node + 1 for node in taken)]))
        return {
            "nodes": [{"name": f"node-{node}", "run_id": taken.get(node)} for node in nodes],
            "waiting": target.queue.waiting(),
        }
    capacity = target.compute.capacity()
    return {"cpus": capacity.cpus, "memory_gb": capacity.memory_gb, "gpus": [str(gpu) for gpu in capacity.gpus]}
