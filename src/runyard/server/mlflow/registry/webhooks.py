"""MLflow's endpoints for webhooks of the registry."""

from __future__ import annotations

import re
from typing import Any

from runyard.errors import RunyardException
from runyard.models.registry import Models
from runyard.server.mlflow.constants import milliseconds
from runyard.server.mlflow.errors import INVALID, MlflowError, invalid_value, missing_value, require
from runyard.server.mlflow.registry.names import text
from runyard.server.mlflow.registry.search import page
from runyard.store.webhooks import (
    CREATED,
    DELETED,
    EVENTS,
    MODEL_VERSION,
    REGISTERED_MODEL,
    SET,
    VERSION_ALIAS,
    VERSION_TAG,
    Webhook,
)

Fields = dict[str, Any]
_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_MAX_EVENTS = 100
_MAX_WEBHOOKS = 1000
# the numbers of protobuf
_ENTITIES = {"1": REGISTERED_MODEL, "2": MODEL_VERSION, "3": VERSION_TAG, "4": VERSION_ALIAS}
_ACTIONS = {"1": CREATED, "2": "updated", "3": DELETED, "4": SET}
_STATUSES = {"ACTIVE": True, "1": True, "DISABLED": False, "2": False}
_EXAMPLES: dict[tuple[str, str], Fields] = {
    (REGISTERED_MODEL, CREATED): {
        "name": "example_model",
        "tags": {"example_key": "example_value"},
        "description": "An example registered model",
    },
    (MODEL_VERSION, CREATED): {
        "name": "example_model",
        "version": "1",
        "source": "models:/123",
        "run_id": "abcd1234abcd5678",
        "tags": {"example_key": "example_value"},
        "description": "An example model version",
    },
    (VERSION_TAG, SET): {"name": "example_model", "version": "1", "key": "example_key", "value": "example_value"},
    (VERSION_TAG, DELETED): {"name": "example_model", "version": "1", "key": "example_key"},
    (VERSION_ALIAS, CREATED): {"name": "example_model", "alias": "example_alias", "version": "1"},
    (VERSION_ALIAS, DELETED): {"name": "example_model", "alias": "example_alias"},
}


def create(models: Models, fields: Fields) -> Any:
    webhook = models.webhooks.add(
        _name(fields),
        require(fields, "url"),
        _events(fields),
        description=text(fields, "description"),
        secret=fields.get("secret"),
        is_active=_is_active(fields.get("status", "ACTIVE")),
    )
    return {"webhook": _to_json(webhook)}


def get(models: Models, fields: Fields) -> Any:
    return {"webhook": _to_json(models.webhooks.get(require(fields, "webhook_id")))}


def listing(models: Models, fields: Fields) -> Any:
    return page("webhooks", [_to_json(webhook) for webhook in models.webhooks.all()], fields, 100, _MAX_WEBHOOKS)


def update(models: Models, fields: Fields) -> Any:
    changes: Fields = {}
    if fields.get("name"):
        changes["name"] = _name(fields)
    if "description" in fields:
        changes["description"] = text(fields, "description")
    for name in ("url", "secret"):
        if fields.get(name):
            changes[name] = str(fields[name])
    if fields.get("events"):
        changes["events"] = _events(fields)
    if "status" in fields:
        changes["is_active"] = _is_active(fields["status"])
    return {"webhook": _to_json(models.webhooks.change(require(fields, "webhook_id"), changes))}


def delete(models: Models, fields: Fields) -> Any:
    models.webhooks.remove(require(fields, "webhook_id"))
    return {}


def test(models: Models, fields: Fields) -> Any:
    """Send an example of an event: by default of the first one that the webhook is for."""
    webhook = models.webhooks.get(require(fields, "webhook_id"))
    entity, action = _event(fields["event"], "event") if fields.get("event") else webhook.events[0]
    try:
        response = models.webhooks.send_example(webhook, entity, action, _EXAMPLES[entity, action])
    except RunyardException as error:
        return {"result": {"success": False, "error_message": error.message}}
    result = {"success": response.is_success, "response_status": response.status, "response_body": response.body}
    return {"result": result}


def _name(fields: Fields) -> str:
    name = require(fields, "name")
    if _NAME.fullmatch(name) is None:
        reason = "expected at most 63 letters, digits, '.', '_' and '-', starting and ending with a letter or digit"
        raise invalid_value("name", name, reason)
    return name


def _events(fields: Fields) -> list[list[str]]:
    events = fields.get("events")
    if not events:
        raise missing_value("events")
    if not isinstance(events, list) or len(events) > _MAX_EVENTS:
        raise invalid_value("events", events, f"expected a list of at most {_MAX_EVENTS} events")
    parsed = [_event(event, f"events[{index}]") for index, event in enumerate(events)]
    return [list(event) for event in dict.fromkeys(map(tuple, parsed))]


def _event(event: Any, path: str) -> list[str]:
    if not isinstance(event, dict):
        raise invalid_value(path, event, "expected an object with entity and action")
    entity, action = str(event.get("entity")), str(event.get("action"))
    entity, action = _ENTITIES.get(entity, entity.lower()), _ACTIONS.get(action, action.lower())
    if (entity, action) not in EVENTS:
        supported = ", ".join(sorted(f"{entity}.{action}" for entity, action in EVENTS))
        raise MlflowError(INVALID, f"{path}: unsupported event {f'{entity}.{action}'[:100]!r}: expected {supported}")
    return [entity, action]


def _is_active(status: Any) -> bool:
    if str(status) not in _STATUSES:
        raise invalid_value("status", status, "expected ACTIVE or DISABLED")
    return _STATUSES[str(status)]


def _to_json(webhook: Webhook) -> Fields:
    """The secret is never returned."""
    return {
        "webhook_id": webhook.id,
        "name": webhook.name,
        "description": webhook.description,
        "url": webhook.url,
        "events": [{"entity": entity.upper(), "action": action.upper()} for entity, action in webhook.events],
        "status": "ACTIVE" if webhook.is_active else "DISABLED",
        "creation_timestamp": milliseconds(webhook.created_at),
        "last_updated_timestamp": milliseconds(webhook.changed_at),
    }
