"""Webhooks of the registry: events are sent at least once, also after a restart of the yard."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import json
import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from sqlalchemy.exc import DatabaseError

from runyard import __version__, clock
from runyard.errors import RunyardException, UserErrorException
from runyard.models.webhook_request import WebhookResponse, WebhookUnreachable, check_url, post
from runyard.secrets.vault import Vault
from runyard.store.database import Database
from runyard.store.webhooks import Delivery, Webhook, WebhookNotFound, WebhookStore, event_content

log = logging.getLogger(__name__)

_BATCH = 100
_PARALLEL_WEBHOOKS = 4
_FIRST_DELAY_S, _MAX_DELAY_S = 1.0, 3600.0
_GIVE_UP_AFTER_S = 24 * 3600.0
_ATTEMPTS_WITH_OPEN_YARD = 8  # about four minutes; an idle yard may exit after them, and the next one continues
_MAX_WEBHOOKS = 100
_MAX_SECRET = 4096


class Webhooks:
    """Thread-safe. Each webhook gets its events in order, unless one of them could not be sent."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._store, self._vault = WebhookStore(database), vault
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._sending: set[str] = set()  # ids of webhooks
        self._pool = ThreadPoolExecutor(_PARALLEL_WEBHOOKS, "webhook")
        self.busy = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="webhooks", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def wake(self) -> None:
        """Look for queued events now."""
        self._wake.set()

    def add(
        self,
        name: str,
        url: str,
        events: Sequence[Sequence[str]],
        *,
        description: str = "",
        secret: str | None = None,
        is_active: bool = True,
    ) -> Webhook:
        check_url(url)
        if len(self._store.all()) >= _MAX_WEBHOOKS:
            raise UserErrorException(f"there are already {_MAX_WEBHOOKS} webhooks", hint="delete one first")
        now, id = clock.now(), str(uuid.uuid4())
        sealed = self._seal(id, secret)
        webhook = Webhook(id, name, url, [[*event] for event in events], description, sealed, is_active, now, now)
        self._store.add(webhook)
        return webhook

    def get(self, webhook_id: str) -> Webhook:
        return self._store.get(webhook_id)

    def all(self) -> list[Webhook]:
        return self._store.all()

    def change(self, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
        """Set fields of a webhook; ``secret`` is in clear."""
        values = {**changes, "changed_at": clock.now()}
        if "url" in values:
            check_url(values["url"])
        if "secret" in values:
            values["secret"] = self._seal(webhook_id, values["secret"])
        return self._store.change(webhook_id, lambda webhook: dataclasses.replace(webhook, **values))

    def remove(self, webhook_id: str) -> None:
        self._store.remove(webhook_id)

    def send_example(self, webhook: Webhook, entity: str, action: str, data: Mapping[str, Any]) -> WebhookResponse:
        """Send an event once, without the queue.

        Raises:
            WebhookUnreachable: There was no response.
        """
        return self._send(webhook, str(uuid.uuid4()), event_content(entity, action, data))

    def _send(self, webhook: Webhook, id: str, content: Mapping[str, Any]) -> WebhookResponse:
        timestamp, body = str(int(clock.now())), json.dumps(content)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"runyard/{__version__}",
            "X-MLflow-Delivery-Id": id,
            "X-MLflow-Timestamp": timestamp,
        }
        if webhook.secret:
            headers["X-MLflow-Signature"] = _sign(self._open(webhook), f"{id}.{timestamp}.{body}")
        return post(webhook.url, body.encode(), headers)

    def _run(self) -> None:
        with suppress(DatabaseError):  # such as a full disk: they are attempted later
            if self._store.next_due_at() is not None:
                self._store.make_due()
        while not self._stopped.is_set():
            delay = _MAX_DELAY_S
            self._wake.clear()
            try:
                self._send_due()
                due_at = self._store.next_due_at()
                self.busy = due_at is not None and self._store.has_new_deliveries(_ATTEMPTS_WITH_OPEN_YARD)
                # deliveries of a webhook that is being sent to are due, too: its worker wakes this thread at its end
                delay = _MAX_DELAY_S if due_at is None else max(due_at - clock.now(), 0.5)
            except DatabaseError as error:  # such as a full disk; tried again
                log.warning("cannot read the queue of webhooks: %s", error)
                delay = 10.0
            self._wake.wait(delay)

    def _send_due(self) -> None:
        by_webhook: dict[str, list[Delivery]] = {}
        with self._lock:
            sending = set(self._sending)
        for delivery in self._store.due(_BATCH):
            if delivery.webhook_id not in sending:
                by_webhook.setdefault(delivery.webhook_id, []).append(delivery)
        for webhook_id, deliveries in by_webhook.items():
            with self._lock:
                self._sending.add(webhook_id)
            with suppress(RuntimeError):  # the yard is closing
                self._pool.submit(self._send_all, webhook_id, deliveries)

    def _send_all(self, webhook_id: str, deliveries: list[Delivery]) -> None:
        try:
            for number, delivery in enumerate(deliveries):
                if self._stopped.is_set():
                    return
                failure = self._deliver(webhook_id, delivery)
                if failure:
                    self._postpone(deliveries[number:], failure)
                    return
        except DatabaseError as error:  # the deliveries stay queued
            log.warning("cannot update the queue of webhooks: %s", error)
        finally:
            with self._lock:
                self._sending.discard(webhook_id)
            self._wake.set()

    def _deliver(self, webhook_id: str, delivery: Delivery) -> str:
        """Send one event; returns why it was not accepted, or an empty text."""
        try:
            webhook = self._store.get(webhook_id)
            if webhook.is_active:
                response = self._send(webhook, delivery.id, delivery.content)
                if not response.is_success:
                    return f"{webhook.url} responded with status {response.status}"
        except WebhookNotFound:
            pass
        except (WebhookUnreachable, RunyardException) as error:
            return error.message
        self._store.end_delivery(delivery.id)
        return ""

    def _postpone(self, deliveries: Sequence[Delivery], failure: str) -> None:
        for delivery in deliveries:
            age = clock.now() - delivery.created_at
            if age > _GIVE_UP_AFTER_S:
                log.warning("webhook: dropped %s after %s: %s", delivery.id, clock.duration_text(age), failure)
                self._store.end_delivery(delivery.id)
            else:
                delay = min(_FIRST_DELAY_S * 2 ** min(delivery.attempts, 30), _MAX_DELAY_S)
                self._store.postpone(delivery, clock.now() + delay)
        log.info("webhook: %s; trying again", failure)

    def _seal(self, webhook_id: str, secret: str | None) -> str | None:
        if not secret:
            return None
        if len(secret) > _MAX_SECRET:
            raise UserErrorException(f"the secret of a webhook has at most {_MAX_SECRET:,} characters")
        return base64.b64encode(self._vault.cipher.seal(secret, _purpose(webhook_id))).decode()

    def _open(self, webhook: Webhook) -> str:
        secret = self._vault.cipher.open(base64.b64decode(webhook.secret or ""), _purpose(webhook.id))
        self._vault.remember([secret])
        return secret


def _purpose(webhook_id: str) -> str:
    return f"the secret of the webhook {webhook_id}"


def _sign(secret: str, text: str) -> str:
    digest = hmac.new(secret.encode("utf-8", "surrogateescape"), text.encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
