"""Webhooks, and the queue of events that are to be sent to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Connection, delete, func, insert, literal_column, select, update

from runyard import clock
from runyard.errors import UserErrorException
from runyard.store import schema
from runyard.store.database import Database

_KIND = "webhook"
_documents, _deliveries = schema.documents, schema.webhook_deliveries

REGISTERED_MODEL, MODEL_VERSION = "registered_model", "model_version"
VERSION_TAG, VERSION_ALIAS = "model_version_tag", "model_version_alias"
CREATED, SET, DELETED = "created", "set", "deleted"
EVENTS = frozenset(
    {
        *((REGISTERED_MODEL, CREATED), (MODEL_VERSION, CREATED)),
        *((VERSION_TAG, SET), (VERSION_TAG, DELETED)),
        *((VERSION_ALIAS, CREATED), (VERSION_ALIAS, DELETED)),
    }
)


class WebhookNotFound(UserErrorException):
    pass


@dataclass(frozen=True)
class Webhook:
    id: str
    name: str
    url: str
    events: list[list[str]]  # pairs of an entity and an action
    description: str
    secret: str | None  # encrypted
    is_active: bool
    created_at: float
    changed_at: float


@dataclass(frozen=True)
class Delivery:
    id: str
    webhook_id: str
    content: dict[str, Any]
    created_at: float
    attempts: int


def queue_event(connection: Connection, entity: str, action: str, data: Mapping[str, Any]) -> None:
    """Queue an event for its webhooks in the transaction of the change, so that neither exists without the other."""
    event = [entity, action]
    content = event_content(entity, action, data)
    for webhook in _load_all(connection):
        if webhook.is_active and event in webhook.events:
            now = clock.now()
            values = {"delivery_id": str(uuid.uuid4()), "webhook_id": webhook.id, "content": content}
            connection.execute(insert(_deliveries).values(**values, created_at=now, due_at=now, attempts=0))


def event_content(entity: str, action: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request to a webhook."""
    timestamp = datetime.fromtimestamp(clock.now(), timezone.utc).isoformat()
    return {"entity": entity, "action": action, "timestamp": timestamp, "data": dict(data)}


class WebhookStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, webhook: Webhook) -> None:
        with self._database.write() as connection:
            values = {"content": asdict(webhook), "created_at": webhook.created_at}
            connection.execute(insert(_documents).values(kind=_KIND, id=webhook.id, owner=webhook.id, **values))

    def get(self, webhook_id: str) -> Webhook:
        with self._database.read() as connection:
            return _load(connection, webhook_id)

    def all(self) -> list[Webhook]:
        """All webhooks, newest first."""
        with self._database.read() as connection:
            return _load_all(connection)

    def change(self, webhook_id: str, apply: Callable[[Webhook], Webhook]) -> Webhook:
        with self._database.write() as connection:
            webhook = apply(_load(connection, webhook_id))
            is_webhook = (_documents.c.kind == _KIND) & (_documents.c.id == webhook_id)
            connection.execute(update(_documents).where(is_webhook).values(content=asdict(webhook)))
        return webhook

    def remove(self, webhook_id: str) -> None:
        """Remove a webhook with its queued events."""
        with self._database.write() as connection:
            _load(connection, webhook_id)
            connection.execute(delete(_documents).where(_documents.c.kind == _KIND, _documents.c.id == webhook_id))
            connection.execute(delete(_deliveries).where(_deliveries.c.webhook_id == webhook_id))

    def due(self, limit: int) -> list[Delivery]:
        """Deliveries that are due, in the order of their events."""
        query = select(_deliveries).where(_deliveries.c.due_at <= clock.now())
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(literal_column("rowid")).limit(limit)).all()
        return [Delivery(row.delivery_id, row.webhook_id, row.content, row.created_at, row.attempts) for row in rows]

    def next_due_at(self) -> float | None:
        with self._database.read() as connection:
            due_at: float | None = connection.execute(select(func.min(_deliveries.c.due_at))).scalar_one()
        return due_at

    def has_new_deliveries(self, max_attempts: int) -> bool:
        """True if a delivery was attempted less than ``max_attempts`` times."""
        query = select(_deliveries.c.delivery_id).where(_deliveries.c.attempts < max_attempts).limit(1)
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def make_due(self) -> None:
        """Let all deliveries be attempted now."""
        with self._database.write() as connection:
            connection.execute(update(_deliveries).values(due_at=clock.now()))

    def end_delivery(self, delivery_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(_deliveries).where(_deliveries.c.delivery_id == delivery_id))

    def postpone(self, delivery: Delivery, due_at: float) -> None:
        values = {"due_at": due_at, "attempts": delivery.attempts + 1}
        with self._database.write() as connection:
            connection.execute(update(_deliveries).where(_deliveries.c.delivery_id == delivery.id).values(**values))


def _load(connection: Connection, webhook_id: str) -> Webhook:
    query = select(_documents.c.content).where(_documents.c.kind == _KIND, _documents.c.id == webhook_id)
    content = connection.execute(query).scalar_one_or_none()
    if content is None:
        raise WebhookNotFound(f"no webhook {webhook_id!r}")
    return Webhook(**content)


def _load_all(connection: Connection) -> list[Webhook]:
    query = select(_documents.c.content).where(_documents.c.kind == _KIND)
    rows = connection.execute(query.order_by(_documents.c.created_at.desc(), _documents.c.id)).scalars()
    return [Webhook(**content) for content in rows]
