"""Environments: registered definitions, and built environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from runyard.lifecycle.state import TERMINAL, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response
from runyard.store.environments import RegisteredEnvironments
from runyard.store.services import ServiceStore


@dataclass(frozen=True)
class Registration:
    name: str
    definition: dict[str, Any]


@dataclass(frozen=True)
class Prune:
    """Delete built environments; all if neither field is set. Those in use by runs or services are kept."""

    keys: list[str] | None = None
    unused_for_s: float | None = None


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["environments"])
    registered = RegisteredEnvironments(conductor.components.database)
    built = conductor.components.environments

    @router.get("/environments")
    def list_built() -> Response:
        return json_response(built.list())

    @router.post("/environments/prune")
    def prune(request: Prune) -> Response:
        unfinished = conductor.components.runs.find(
            states=[s for s in RunState if s not in TERMINAL], include_children=True, limit=10_000
        )
        in_use = {record.environment_key for record in unfinished if record.environment_key}
        in_use |= ServiceStore(conductor.components.database).environments_in_use()
        return json_response(
            built.prune(
                keys=request.keys or (),
                older_than_s=request.unused_for_s,
                all=request.keys is None and request.unused_for_s is None,
                in_use=in_use,
            )
        )

    @router.get("/environments/registered")
    def list_registered() -> Response:
        return json_response(registered.list())

    @router.post("/environments/registered")
    def register(request: Registration) -> Response:
        """Register a definition. An unchanged definition keeps its version."""
        return json_response(registered.register(request.name, request.definition))

    @router.get("/environments/registered/{name}")
    def get_registered(name: str, version: int | None = None) -> Response:
        return json_response(registered.get(name, version))

    return router
