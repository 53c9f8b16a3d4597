"""Limits of TCP connections before authentication, and the number of repeated log lines."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from runyard.wire.yard import ListenOptions, StudioAddress
from runyard.yard import connection_limits
from runyard.yard.acceptor import Acceptor
from runyard.yard.repeated_lines import RepeatedLineFilter
from runyard.yard.tcp_listener import TcpListener, uvicorn_config


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def with_listener(home: Path, check: Callable[[StudioAddress], Awaitable[None]]) -> None:
    """Run ``check`` with the address of a listener."""

    async def serve() -> None:
        server = uvicorn.Server(uvicorn_config(app))
        listener = TcpListener(home)
        await listener.start(server, app)
        await listener._ensure_listening(ListenOptions())
        assert listener.address is not None
        await check(listener.address)
        listener.stop()
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # type: ignore[union-attr]
        await asyncio.sleep(0)

    asyncio.run(serve())


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> bytes:
    writer.write(head)
    await writer.drain()
    return await reader.readuntil(b"\r\n")


def authenticated(address: StudioAddress) -> bytes:
    return b"GET /api/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % address.token.encode()


def test_a_large_head_is_refused(tmp_path: Path) -> None:
    async def check(address: StudioAddress) -> None:
        for part in (b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000):
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(part)
            status = b""
            with pytest.raises((ConnectionError, EOFError)):  # noqa: PT012
                while True:
                    writer.write(b"x" * 10_000)
                    await writer.drain()
                    await asyncio.sleep(0)
                    if not status and reader._buffer:  # type: ignore[attr-defined]
                        status = await reader.readline()
            assert status in (b"HTTP/1.1 431 Request Header Fields Too Large\r\n", b"HTTP/1.1 400 Bad Request\r\n", b"")
            writer.close()

    with_listener(tmp_path, check)


def test_an_incomplete_head_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 0.05)

    async def check(address: StudioAddress) -> None:
        for part in (b"", b"GET / HT"):
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            assert (await request(reader, writer, part)).startswith(b"HTTP/1.1 408")
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        assert (await request(reader, writer, authenticated(address))).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b"ok")
        assert (await request(reader, writer, b"GET /api")).startswith(b"HTTP/1.1 408")  # a second head, too
        writer.close()

    with_listener(tmp_path, check)


def test_a_client_with_a_token_is_served_among_idle_connections(tmp_path: Path) -> None:
    async def check(address: StudioAddress) -> None:
        first = await asyncio.open_connection("127.0.0.1", address.port)
        assert (await request(*first, authenticated(address))).startswith(b"HTTP/1.1 200")
        await first[0].readuntil(b"ok")
        idle = [
            await asyncio.open_connection("127.0.0.1", address.port)
            for _ in range(3 * connection_limits.MAX_CONNECTIONS_PER_PEER)
        ]
        newest = await asyncio.open_connection("127.0.0.1", address.port)
        for client in (first, newest):
            assert (await request(*client, authenticated(address))).startswith(b"HTTP/1.1 200")
        with pytest.raises((ConnectionError, EOFError)):
            await idle[0][0].readexactly(1)
        for _, writer in (*idle, first, newest):
            writer.close()

    with_listener(tmp_path, check)


def test_the_busiest_peer_loses_its_oldest_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS", 5)
    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS_PER_PEER", 4)
    connections = connection_limits.UnauthenticatedConnections()
    many = [Connection() for _ in range(5)]
    few = [Connection() for _ in range(2)]
    for connection in many:
        connections.add("10.0.0.1", connection)  # type: ignore[arg-type]
    for connection in few:
        connections.add("10.0.0.2", connection)  # type: ignore[arg-type]
    assert [connection.aborted for connection in many] == [True, True, False, False, False]
    assert [connection.aborted for connection in few] == [False, False]
    assert len(connections) == 5


def test_descriptors_are_reserved(tmp_path: Path) -> None:
    async def check() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        used = os.dup(0)
        os.close(used)  # the lowest free descriptor
        acceptor = Acceptor(listening, asyncio.Protocol, 2 * (used + 4))
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        with pytest.raises((ConnectionError, EOFError)):  # one of them was not accepted
            await asyncio.gather(*(reader.readexactly(1) for reader, _ in clients))
        acceptor.close()
        for _, writer in clients:
            writer.close()

    asyncio.run(check())


def test_repeated_warnings_are_limited(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("test.repeated")
    now = [0.0]
    monkeypatch.setattr("runyard.yard.repeated_lines.clock.monotonic", lambda: now[0])
    line_filter = RepeatedLineFilter()
    log.addFilter(line_filter)
    for number in range(1000):
        log.warning("invalid request %d", number)
        log.info("state of %d", number)
    log.error("another")
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 20
    assert caplog.records[-1].message == "another"
    now[0] = 61.0
    log.warning("invalid request %d", 7)
    assert caplog.records[-1].message == "invalid request 7 (980 similar lines before were not logged)"
    log.removeFilter(line_filter)
