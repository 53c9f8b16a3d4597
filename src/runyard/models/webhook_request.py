"""Sends one request to a webhook's URL, but not to addresses of the yard's own network.

Anyone who may create a webhook could otherwise read services that only this machine can reach. The address is checked
when the connection is made, because a name may resolve to another address every time. Redirects are not followed.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from runyard.errors import UserErrorException

ALLOWED_HOSTS = "RUNYARD_WEBHOOK_HOSTS"
_MAX_URL = 2048
_MAX_RESPONSE_BYTES = 16 * 1024
_TIMEOUT_S, _DEADLINE_S = 10.0, 30.0
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_Address = tuple[int, int, int, str, Any]


class WebhookUnreachable(UserErrorException):
    """The request was not sent, or there was no response."""


@dataclass(frozen=True)
class WebhookResponse:
    status: int
    body: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def check_url(url: str) -> None:
    """Refuse a URL that requests are never sent to. The addresses of its host are checked for every request."""
    parts = _split(url)
    if _is_allowed(parts):
        return
    if parts.scheme != "https":
        raise _refusal(url, "expected https://")
    host = parts.hostname or ""
    try:
        is_public = _is_public(ipaddress.ip_address(host))
    except ValueError:
        is_public = host != "localhost" and not host.endswith(".localhost")
    if not is_public:
        raise _refusal(url, f"{host} is not a public address")


def post(url: str, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
    """Send a POST request and return the response, with the first part of its body.

    Raises:
        WebhookUnreachable: The address is not allowed, or there was no response.
    """
    check_url(url)
    parts = _split(url)
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    try:
        connection = _connect(url, parts, host, port)
        # a response may arrive byte by byte, each of them in time
        expired = threading.Event()
        deadline = threading.Timer(_DEADLINE_S, _shut_down, [connection, expired])
        deadline.daemon = True
        deadline.start()
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            text = response.read(_MAX_RESPONSE_BYTES).decode("utf-8", "replace")
            if expired.is_set():
                raise TimeoutError(f"the response was not complete after {_DEADLINE_S:g} seconds")
            return WebhookResponse(response.status, text)
        finally:
            deadline.cancel()
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise WebhookUnreachable(f"no response from {url}: {type(error).__name__}: {error}") from error


def _connect(url: str, parts: SplitResult, host: str, port: int) -> http.client.HTTPConnection:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for address in addresses:
        if not _is_allowed(parts) and not _is_public(ipaddress.ip_address(str(address[4][0]).partition("%")[0])):
            raise _refusal(url, f"{host} has the address {address[4][0]}, which is not public", WebhookUnreachable)
    connected = _open_socket(addresses)
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, context=context)
            connection.sock = context.wrap_socket(connected, server_hostname=host)
        else:
            connection = http.client.HTTPConnection(host, port)
            connection.sock = connected
        connection.auto_open = 0  # a second connection would look the name up again
    except BaseException:
        connected.close()
        raise
    return connection


def _open_socket(addresses: Sequence[_Address]) -> socket.socket:
    failure: OSError = OSError("the host has no address")
    for family, kind, protocol, _, address in addresses:
        candidate = socket.socket(family, kind, protocol)
        candidate.settimeout(_TIMEOUT_S)
        try:
            candidate.connect(address)
            return candidate
        except OSError as error:
            candidate.close()
            failure = error
    raise failure


def _shut_down(connection: http.client.HTTPConnection, expired: threading.Event) -> None:
    expired.set()
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _split(url: str) -> SplitResult:
    if len(url) > _MAX_URL or not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise _refusal(url[:100], f"expected at most {_MAX_URL} ASCII characters without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refusal(url, str(error)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _refusal(url, "expected https://HOST/PATH")
    if parts.username is not None:
        raise _refusal(url, "it must not contain a user name or a password")
    return parts


def _is_allowed(parts: SplitResult) -> bool:
    """True for hosts that the owner of the yard allows, such as a CI server in the same network."""
    allowed = {entry.strip().lower() for entry in os.environ.get(ALLOWED_HOSTS, "").split(",")} - {""}
    return bool(allowed & {str(parts.hostname), f"{parts.hostname}:{parts.port}"})


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if embedded is None and address in _NAT64:
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return _is_public(embedded)
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _refusal(url: str, reason: str, kind: type[UserErrorException] = UserErrorException) -> UserErrorException:
    hint = f"webhooks use HTTPS and public addresses; {ALLOWED_HOSTS} of the yard allows other hosts"
    return kind(f"invalid webhook URL {url!r}: {reason}", hint=hint)
