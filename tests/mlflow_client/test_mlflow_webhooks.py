"""Webhooks of the stock MLflow client, with a real receiver and a yard that is killed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities.webhook import WebhookStatus
from mlflow.exceptions import MlflowException, RestException

from runyard import Model, Workspace
from support import a_home, eventually, stop_yard

SECRET = "a-secret-of-the-receiver"


class Receiver:
    """Records requests; responds with ``status``."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.end_headers()
                self.wfile.write(b"thanks")

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        contents = [json.loads(body) for _, body in self.requests]
        return [(f"{content['entity']}.{content['action']}", content["data"]) for content in contents]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate yard that allows a receiver on this machine."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        monkeypatch.setenv("RUNYARD_WEBHOOK_HOSTS", "127.0.0.1")
        yield folder


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_events_of_both_sides_are_delivered_with_a_signature(
    client: MlflowClient, workspace: Workspace, receiver: Receiver, tmp_path: Path
) -> None:
    events = [
        *("registered_model.created", "model_version.created", "model_version_tag.set", "model_version_tag.deleted"),
        *("model_version_alias.created", "model_version_alias.deleted"),
    ]
    webhook = client.create_webhook("all", receiver.url, events, secret=SECRET)
    (tmp_path / "net.pt").write_text("weights")
    Model.register(workspace, str(tmp_path / "net.pt"), "net", tags={"a": "1"}, description="first")
    client.set_registered_model_alias("net", "champion", "1")
    client.set_model_version_tag("net", "1", "team", "vision")
    Model(workspace, "net").remove_tags(["team"])
    Model(workspace, "net").remove_alias("champion")
    eventually(lambda: len(receiver.requests) == 6, "all events are delivered")
    version = {"name": "net", "version": "1"}
    created = {**version, "source": "models:/net/1", "run_id": None, "tags": {"a": "1"}, "description": "first"}
    assert receiver.events() == [
        ("registered_model.created", {"name": "net", "tags": {}, "description": None}),
        ("model_version.created", created),
        ("model_version_alias.created", {**version, "alias": "champion"}),
        ("model_version_tag.set", {**version, "key": "team", "value": "vision"}),
        ("model_version_tag.deleted", {**version, "key": "team"}),
        ("model_version_alias.deleted", {"name": "net", "alias": "champion"}),
    ]
    for headers, body in receiver.requests:
        signed = f"{headers['x-mlflow-delivery-id']}.{headers['x-mlflow-timestamp']}.".encode() + body
        digest = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        assert headers["x-mlflow-signature"] == f"v1,{digest}"
    assert len({headers["x-mlflow-delivery-id"] for headers, _ in receiver.requests}) == 6
    client.update_webhook(webhook.webhook_id, status=WebhookStatus.DISABLED)
    client.create_registered_model("silent")
    client.update_webhook(webhook.webhook_id, status=WebhookStatus.ACTIVE)
    client.create_registered_model("loud")
    eventually(lambda: len(receiver.requests) == 7, "the event of the active webhook is delivered")
    assert receiver.events()[-1][1]["name"] == "loud"


def test_events_are_delivered_after_the_receiver_and_the_yard_were_down(
    client: MlflowClient, home: Path, receiver: Receiver, tmp_path: Path
) -> None:
    client.create_webhook("hook", receiver.url, ["model_version.created"], secret=SECRET)
    receiver.status = 503
    (tmp_path / "net.pt").write_text("weights")
    Model.register(Workspace(), str(tmp_path / "net.pt"), "net")
    eventually(lambda: len(receiver.requests) >= 2, "a refused event is sent again")
    assert len({headers["x-mlflow-delivery-id"] for headers, _ in receiver.requests}) == 1
    receiver.close()
    Model.register(Workspace(), str(tmp_path / "net.pt"), "net")
    stop_yard(home, signal.SIGKILL)
    second = Receiver(receiver.port)
    try:
        Workspace().connection.get("/api/health")  # starts the next yard
        eventually(lambda: {data["version"] for _, data in second.events()} == {"1", "2"}, "both events are delivered")
    finally:
        second.close()


def test_webhooks_are_listed_tested_changed_and_deleted(
    client: MlflowClient, home: Path, workspace: Workspace, receiver: Receiver
) -> None:
    webhook = client.create_webhook("first", receiver.url, ["model_version.created"], "about", secret=SECRET)
    assert (webhook.name, webhook.url, webhook.description) == ("first", receiver.url, "about")
    assert (webhook.secret, webhook.status) == (None, WebhookStatus.ACTIVE)
    client.create_webhook("second", receiver.url, ["registered_model.created"])
    page = client.list_webhooks(max_results=1)
    assert [hook.name for hook in [*page, *client.list_webhooks(page_token=page.token)]] == ["second", "first"]
    result = client.test_webhook(webhook.webhook_id)
    assert (result.success, result.response_status, result.response_body) == (True, 200, "thanks")
    assert receiver.events()[0][0] == "model_version.created"
    receiver.status = 500
    assert client.test_webhook(webhook.webhook_id, "model_version_tag.set").success is False
    receiver.close()
    assert "no response" in str(client.test_webhook(webhook.webhook_id).error_message)
    client.update_webhook(webhook.webhook_id, name="renamed", events=["model_version_alias.created"])
    changed = client.get_webhook(webhook.webhook_id)
    assert (changed.name, str(changed.events[0])) == ("renamed", "model_version_alias.created")
    client.delete_webhook(webhook.webhook_id)
    with pytest.raises(RestException) as caught:
        client.get_webhook(webhook.webhook_id)
    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    for file in home.rglob("*"):  # the secret is stored encrypted
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_invalid_webhooks_are_refused(client: MlflowClient) -> None:
    version_created = ["model_version.created"]
    for name, url, events in (
        ("hook", "http://example.com/", version_created),
        ("hook", "https://169.254.169.254/", version_created),
        ("hook", "https://localhost/", version_created),
        ("hook", "gopher://127.0.0.1/", version_created),
        ("-hook", "https://example.com/", version_created),
        ("hook", "https://example.com/", ["prompt.created"]),
        ("hook", "https://example.com/", []),
    ):
        with pytest.raises(MlflowException) as caught:
            client.create_webhook(name, url, events)
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE", (name, url)
    assert client.list_webhooks() == []
