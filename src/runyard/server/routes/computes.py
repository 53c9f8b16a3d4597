"""Compute targets: create, list, update, delete, and their status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from runyard.compute.registry import Target
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
        conductor.place_waiting(changed)  # waiting runs may fit into a larger cluster
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
        "status": target.describe(),
    }
