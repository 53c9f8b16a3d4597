"""Secrets: set, list, delete. Values are never returned."""

from __future__ import annotations

from fastapi import APIRouter, Response

from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response
from runyard.wire.secrets import SecretView, SetSecret


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["secrets"])
    named = conductor.components.vault.named

    @router.get("/secrets", response_model=list[SecretView])
    def list_secrets() -> Response:
        """List the names of all secrets."""
        return json_response([SecretView(info.name, info.created_at, info.updated_at) for info in named.list()])

    @router.post("/secrets")
    def set_secret(request: SetSecret) -> Response:
        """Store or replace a secret. `created` is true if the name is new."""
        return json_response({"name": request.name, "created": named.set(request.name, request.value)})

    @router.delete("/secrets/{name}")
    def delete_secret(name: str) -> Response:
        """Delete a secret. Runs that have started keep the value; runs that start later fail."""
        named.delete(name)
        return json_response({})

    return router
