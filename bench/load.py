"""Load generator: persistent connections to a service, each with one request at a time."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A server on this machine and the form of its requests."""

    port: int
    path: str = "/score"
    key: str = ""
    json_key: str = "data"  # key of the rows in the JSON body

    def request(self, rows: list[list[float]]) -> bytes:
        body = json.dumps({self.json_key: rows}).encode()
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n{key}"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(frozen=True)
class LoadResult:
    per_second: float
    p50_s: float
    p99_s: float
    responses: int


def load(target: Target, clients: int, seconds: float, rows: list[list[float]]) -> LoadResult:
    """Send the next request of each client after its response. Raises RuntimeError for a status other than 200."""
    request = target.request(rows)
    sockets: dict[int, socket.socket] = {}
    started_at: dict[int, float] = {}
    pieces: dict[int, bytes] = {}
    poller = select.epoll()
    now = time.perf_counter
    try:
        for _ in range(clients):
            connection = socket.create_connection(("127.0.0.1", target.port), timeout=60)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets[connection.fileno()] = connection
            poller.register(connection.fileno(), select.EPOLLIN)
        for number, connection in sockets.items():
            pieces[number], started_at[number] = b"", now()
            connection.sendall(request)
        durations: list[float] = []
        first = now()
        end = first + seconds
        while now() < end:
            for number, _ in poller.poll(1):
                data = pieces[number] + sockets[number].recv(1 << 16)
                if not _is_complete(data):
                    pieces[number] = data
                    continue
                at = now()
                durations.append(at - started_at[number])
                pieces[number], started_at[number] = b"", at
                sockets[number].sendall(request)
        duration = now() - first
    finally:
        for connection in sockets.values():
            connection.close()
        poller.close()
    durations.sort()
    if not durations:
        raise RuntimeError(f"no response within {seconds:g} s")
    count = len(durations)
    return LoadResult(count / duration, durations[count // 2], durations[int(count * 0.99)], count)


def wait_for_response(target: Target, rows: list[list[float]], within_s: float) -> None:
    """Send requests until the first response arrives."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            with socket.create_connection(("127.0.0.1", target.port), timeout=60) as connection:
                connection.sendall(target.request(rows))
                data = b""
                while not _is_complete(data):
                    piece = connection.recv(1 << 16)
                    if not piece:
                        raise OSError("closed")
                    data += piece
                return
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_complete(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(data[:300].decode("latin-1"))
    head = data[:end].lower()
    header = head.find(b"content-length:")
    if header < 0:
        return data.endswith(b"0\r\n\r\n")
    length = int(head[header + 15 :].split(b"\r\n", 1)[0])
    return len(data) >= end + 4 + length
