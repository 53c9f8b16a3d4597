"""Addresses that webhooks may reach. Requests go to real sockets of this machine."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from runyard.errors import UserErrorException
from runyard.models import webhook_request
from runyard.models.webhook_request import WebhookUnreachable, check_url, post


class _Handler(http.server.BaseHTTPRequestHandler):
    paths: list[str] = []

    def do_POST(self) -> None:
        self.paths.append(self.path)
        self.send_response(302 if self.path == "/redirect" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"x" * 100_000)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    _Handler.paths.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com/hook",
        "https://",
        "https:///hook",
        "not a url",
        "https://user:password@example.com/",
        "https://exa mple.com/",
        "https://example.com/\r\nHost: other",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://[::1",
        "https://localhost/",
        "https://a.localhost/",
        "https://127.0.0.1/",
        "https://10.0.0.7/",
        "https://169.254.169.254/latest/meta-data",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://example.com/" + "x" * 3000,
    ],
)
def test_a_url_that_is_not_public_https_is_refused(url: str) -> None:
    with pytest.raises(UserErrorException, match="invalid webhook URL"):
        check_url(url)


def test_public_https_is_accepted() -> None:
    for url in (
        "https://example.com/hook?a=b",
        "https://example.com:8443",
        "https://1.1.1.1/",
        "https://[2606:4700::1]/",
    ):
        check_url(url)


def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name had a public address when the webhook was created."""
    url = f"https://example.com:{port}/hook"
    check_url(url)
    address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(webhook_request.socket, "getaddrinfo", lambda *_, **__: [address])
    with pytest.raises(WebhookUnreachable, match=r"127\.0\.0\.1, which is not public"):
        post(url, b"{}", {})


def test_allowed_hosts_are_reached_over_http_and_responses_are_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNYARD_WEBHOOK_HOSTS", f"other, 127.0.0.1:{port}")
    response = post(f"http://127.0.0.1:{port}/hook?x=1", b"{}", {"X-Test": "1"})
    assert (response.status, response.is_success, len(response.body)) == (200, True, 16 * 1024)
    assert _Handler.paths == ["/hook?x=1"]
    with pytest.raises(UserErrorException, match="expected https"):
        post(f"http://localhost:{port}/", b"{}", {})


def test_redirects_are_not_followed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNYARD_WEBHOOK_HOSTS", "127.0.0.1")
    response = post(f"http://127.0.0.1:{port}/redirect", b"{}", {})
    assert (response.status, response.is_success) == (302, False)
    assert _Handler.paths == ["/redirect"]


def test_a_response_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNYARD_WEBHOOK_HOSTS", "127.0.0.1")
    monkeypatch.setattr(webhook_request, "_DEADLINE_S", 0.5)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        try:
            while not ended.wait(0.05):
                connection.sendall(b"X")  # a header that grows by one byte at a time
        except OSError:
            pass
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(WebhookUnreachable, match="no response"):
            post(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {})
        ended.set()
        thread.join(10)
