"""Clients of a service: connections that are kept, each with one request at a time, and how long each took."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A server on this machine, and how it wants to be asked."""

    port: int
    path: str = "/score"
    key: str = ""
    wraps: str = "data"  # the rows are under this name

    def request(self, rows: list[list[float]]) -> bytes:
        body = json.dumps({self.wraps: rows}).encode()
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n{key}"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(frozen=True)
class Measured:
    per_second: float
    p50_s: float
    p99_s: float
    answers: int


def load(target: Target, clients: int, seconds: float, rows: list[list[float]]) -> Measured:
    """All clients ask again as soon as they are answered. RuntimeError for an answer that is no 200."""
    request = target.request(rows)
    sockets: dict[int, socket.socket] = {}
    began: dict[int, float] = {}
    pieces: dict[int, bytes] = {}
    poller = select.epoll()
    now = time.perf_counter
    try:
        for _ in range(clients):
            one = socket.create_connection(("127.0.0.1", target.port), timeout=60)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets[one.fileno()] = one
            poller.register(one.fileno(), select.EPOLLIN)
        for number, one in sockets.items():
            pieces[number], began[number] = b"", now()
            one.sendall(request)
        taken: list[float] = []
        first = now()
        end = first + seconds
        while now() < end:
            for number, _ in poller.poll(1):
                data = pieces[number] + sockets[number].recv(1 << 16)
                if not _is_whole(data):
                    pieces[number] = data
                    continue
                at = now()
                taken.append(at - began[number])
                pieces[number], began[number] = b"", at
                sockets[number].sendall(request)
        took = now() - first
    finally:
        for one in sockets.values():
            one.close()
        poller.close()
    taken.sort()
    if not taken:
        raise RuntimeError(f"nothing was answered in {seconds:g} s")
    return Measured(len(taken) / took, taken[len(taken) // 2], taken[int(len(taken) * 0.99)], len(taken))


def first_answer(target: Target, rows: list[list[float]], within_s: float) -> None:
    """Asked again and again until there is one."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            with socket.create_connection(("127.0.0.1", target.port), timeout=60) as one:
                one.sendall(target.request(rows))
                data = b""
                while not _is_whole(data):
                    piece = one.recv(1 << 16)
                    if not piece:
                        raise OSError("closed")
                    data += piece
                return
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_whole(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(data[:300].decode("latin-1"))
    head = data[:end].lower()
    place = head.find(b"content-length:")
    if place < 0:
        return data.endswith(b"0\r\n\r\n")
    length = int(head[place + 15 :].split(b"\r\n", 1)[0])
    return len(data) >= end + 4 + length
