"""Compute targets. In this version there is one: the machine that the yard is on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from runyard.errors import ComputeTargetException
from runyard.orchestrator.conductor import Conductor
from runyard.server.answers import answer


@dataclass(frozen=True)
class NewCompute:
    name: str
    kind: str
    configuration: dict[str, Any]


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["computes"])

    @router.get("/computes")
    def computes() -> Response:
        return answer([_local(conductor)])

    @router.post("/computes")
    def create(request: NewCompute) -> Response:
        raise ComputeTargetException(
            f"cannot create {request.kind} {request.name!r}: clusters are not available in this version",
            hint="use compute_target='local', the machine that the yard is on",
        )

    @router.get("/computes/{name}")
    def compute(name: str) -> Response:
        if name != "local":
            raise ComputeTargetException(f"no compute target named {name!r}", hint="targets here: local")
        return answer(_local(conductor))

    @router.delete("/computes/{name}")
    def delete(name: str) -> Response:
        raise ComputeTargetException(f"compute target {name!r} cannot be deleted", hint="targets here: local")

    return router


def _local(conductor: Conductor) -> dict[str, Any]:
    capacity = conductor.rooms.compute.capacity()
    return {
        "name": "local",
        "kind": "Local",
        "configuration": {},
        "created_at": None,
        "status": {
            "cpus": capacity.cpus,
            "memory_gb": capacity.memory_gb,
            "gpus": [str(gpu) for gpu in capacity.gpus],
            "live_runs": len(conductor.live),
        },
    }
