"""Limits of connections over TCP before authentication: every user of the machine can connect to the port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from runyard.posix.peer_user import find_user
from runyard.server.auth import ON_AUTHENTICATED

MAX_HEAD_BYTES = 64 * 1024
HEAD_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 128
MAX_CONNECTIONS_PER_PEER = 64
_MAX_AGE_S = 60.0  # enough to load the studio's page, which is public
_MAX_BYTES = 1 << 20  # of requests without authentication; the largest have a token in their body


class UnauthenticatedConnections:
    """Connections without a valid token or cookie. Beyond the limit, the oldest one of the busiest peer is closed.

    Refusing the newest instead would let idle connections lock everyone else out: a client with a token sends it at
    once, and does not count from then on.
    """

    def __init__(self) -> None:
        self._by_peer: dict[str, dict[LimitedProtocol, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_peer.values()))

    def add(self, peer: str, connection: LimitedProtocol) -> None:
        connections = self._by_peer.setdefault(peer, {})
        connections[connection] = None
        if len(connections) <= MAX_CONNECTIONS_PER_PEER:
            if len(self) <= MAX_CONNECTIONS:
                return
            peer, connections = max(self._by_peer.items(), key=lambda item: len(item[1]))
        oldest = next(iter(connections))
        self.remove(peer, oldest)
        oldest.abort()

    def remove(self, peer: str, connection: LimitedProtocol) -> None:
        connections = self._by_peer.get(peer, {})
        connections.pop(connection, None)
        if not connections:
            self._by_peer.pop(peer, None)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits for the size and the time of a request's head, and for unknown clients."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, unauthenticated: UnauthenticatedConnections
    ) -> None:
        super().__init__(config, server_state, {ON_AUTHENTICATED: self._on_authenticated})
        self._unauthenticated = unauthenticated
        self._peer = ""
        self._is_authenticated = False
        self._is_in_head = True
        self._head_bytes = self._bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._age_timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = _peer_name(transport)
        self._start_head_timer()
        self._age_timer = self.loop.call_later(_MAX_AGE_S, self.abort)
        self._unauthenticated.add(self._peer, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unauthenticated.remove(self._peer, self)
        for timer in (self._head_timer, self._age_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_authenticated:
            self._bytes += len(data)
            if self._bytes > _MAX_BYTES:
                self._refuse(413, b"authenticate before sending this much")
                return
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, b"the head of the request is larger than %d bytes" % MAX_HEAD_BYTES)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        if self._head_timer is None:
            self._start_head_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:  # otherwise a trailer after the body, which nothing reads
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head, self._head_bytes = False, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def _on_authenticated(self) -> None:
        if not self._is_authenticated:
            self._is_authenticated = True
            self._unauthenticated.remove(self._peer, self)
            if self._age_timer is not None:
                self._age_timer.cancel()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(
            HEAD_TIMEOUT_S, self._refuse, 408, b"no complete request within %d s" % HEAD_TIMEOUT_S
        )

    def _refuse(self, status: int, message: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # otherwise it would mix with another response
            head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(message)
            self.transport.write(STATUS_LINE[status] + head + message)
        self.transport.close()


def _peer_name(transport: asyncio.Transport) -> str:
    """The address of the client, and its user if it is on this machine: all of its users have the same address."""
    connection = transport.get_extra_info("socket")
    peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not peer or not local:  # the client is gone
        return ""
    return f"{peer[0]} {find_user(connection.family, peer, local)}"


ProtocolFactory = Callable[[], asyncio.Protocol]


def protocol_factory(config: uvicorn.Config, server_state: ServerState) -> ProtocolFactory:
    """Create protocols that share one count of unauthenticated connections."""
    unauthenticated = UnauthenticatedConnections()
    settings: dict[str, Any] = {"server_state": server_state, "unauthenticated": unauthenticated}
    return lambda: LimitedProtocol(config, **settings)
