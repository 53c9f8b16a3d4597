"""The endpoints of the registry and their handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runyard.models.registry import Models
from runyard.orchestrator.conductor import Conductor
from runyard.server.mlflow.registry import model_versions, registered_models, search, webhooks

Fields = dict[str, Any]

ENDPOINTS: dict[str, Callable[[Models, Fields], Any]] = {
    "POST /registered-models/create": registered_models.create,
    "GET /registered-models/get": registered_models.get,
    "POST /registered-models/rename": registered_models.rename,
    "PATCH /registered-models/update": registered_models.update,
    "DELETE /registered-models/delete": registered_models.delete,
    "GET /registered-models/search": search.registered_models,
    "POST /registered-models/get-latest-versions": registered_models.latest_versions,
    "GET /registered-models/get-latest-versions": registered_models.latest_versions,
    "POST /registered-models/set-tag": registered_models.set_tag,
    "DELETE /registered-models/delete-tag": registered_models.delete_tag,
    "POST /registered-models/alias": registered_models.set_alias,
    "DELETE /registered-models/alias": registered_models.delete_alias,
    "GET /registered-models/alias": registered_models.get_by_alias,
    "GET /model-versions/get": model_versions.get,
    "PATCH /model-versions/update": model_versions.update,
    "DELETE /model-versions/delete": model_versions.delete,
    "GET /model-versions/search": search.model_versions,
    "GET /model-versions/get-download-uri": model_versions.download_uri,
    "POST /model-versions/transition-stage": model_versions.transition_stage,
    "POST /model-versions/set-tag": model_versions.set_tag,
    "DELETE /model-versions/delete-tag": model_versions.delete_tag,
    "POST /webhooks": webhooks.create,
    "GET /webhooks": webhooks.listing,
    "GET /webhooks/{webhook_id}": webhooks.get,
    "PATCH /webhooks/{webhook_id}": webhooks.update,
    "DELETE /webhooks/{webhook_id}": webhooks.delete,
    "POST /webhooks/{webhook_id}/test": webhooks.test,
}


def endpoints(models: Models) -> dict[str, Callable[[Conductor, Fields], Any]]:
    """The handlers of the registry in the form of all other handlers."""
    handlers = {endpoint: _bind(models, handler) for endpoint, handler in ENDPOINTS.items()}
    handlers["POST /model-versions/create"] = lambda conductor, fields: model_versions.create(conductor, models, fields)
    return handlers


def _bind(models: Models, handler: Callable[[Models, Fields], Any]) -> Callable[[Conductor, Fields], Any]:
    return lambda conductor, fields: handler(models, fields)
