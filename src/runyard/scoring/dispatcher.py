"""Dispatches requests: checks keys and limits, routes to the scorer or an info endpoint, counts and logs."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from runyard.scoring import counters, info_endpoints
from runyard.scoring.counters import Counter
from runyard.scoring.http_connection import Connection
from runyard.scoring.request_head import Head, HttpError
from runyard.scoring.responses import Response, problem
from runyard.spec.service import Limits, ServiceFolder

if TYPE_CHECKING:
    from runyard.scoring.traffic_split import TrafficSplit

SCORE = "/score"


class Job(NamedTuple):
    """A request to score."""

    connection: Connection
    head: Head
    body: bytes
    started: float


class Dispatcher:
    """Runs in the event loop's thread. ``score`` starts scoring a job and calls ``complete`` afterwards."""

    def __init__(self, folder: ServiceFolder, service: str, version: int, slot: int) -> None:
        self.folder, self.service, self.version, self.slot = folder, service, version, slot
        self.limits = Limits()
        self.keys: frozenset[str] = frozenset()
        self.methods: tuple[str, ...] = ("POST",)  # of /score
        self.score: Callable[[Job], None] = lambda job: None
        self.traffic_split: Optional[TrafficSplit] = None
        self.openapi: dict[str, Any] = {}
        self.draining = False
        self.waiting = 0
        self.held_bytes = 0  # bytes of bodies
        self.connections: set[Connection] = set()
        self.now = time.monotonic()
        self._wall = 0
        self.common = ""
        folder.counts.mkdir(exist_ok=True)
        self.counter = Counter(folder.counts / f"{version}-{slot}")
        self.counter.numbers[counters.PID] = os.getpid()
        self.counter.numbers[counters.BUSY] = self.counter.numbers[counters.CONNECTIONS] = 0
        self._prefix = os.urandom(6).hex()
        self._number = 0
        self._lines: list[str] = []
        self._log = -1
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self.reopen()
        self.tick()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def apply(self, limits: Limits, keys: frozenset[str]) -> None:
        self.limits, self.keys = limits, keys

    @property
    def largest_body(self) -> int:
        return int(self.limits.body_mb * 1e6)

    @property
    def too_large(self) -> str:
        return f"request body exceeds the limit of {self.limits.body_mb:g} MB"

    def new_id(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number:x}"

    def connected(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.counter.numbers[counters.CONNECTIONS] = len(self.connections)

    def disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.counter.numbers[counters.CONNECTIONS] = len(self.connections)

    def check_head(self, connection: Connection, head: Head) -> None:
        """Check a request before its body is read. Raises HttpError."""
        if head.length > self.largest_body:
            raise HttpError(413, self.too_large)
        if (
            self.keys
            and not connection.internal
            and head.token not in self.keys
            and head.path not in info_endpoints.OPEN
        ):
            problem_text = "a key is required" if head.token is None else "invalid key"
            raise HttpError(401, f"{problem_text}: send `Authorization: Bearer KEY`")

    def serve(self, connection: Connection, head: Head, body: bytes, started: float) -> None:
        if head.path != SCORE:
            self.finish(Job(connection, head, body, started), info_endpoints.respond(self, head, connection.request_id))
        elif head.method not in self.methods:
            self.finish(
                Job(connection, head, body, started),
                info_endpoints.not_allowed(head.method, self.methods, connection.request_id),
            )
        elif (
            self.traffic_split is not None
            and not connection.internal
            and self.traffic_split.forward(connection, head, body, started)
        ):
            self.counter.numbers[counters.FORWARDED] += 1
        elif self.waiting >= self.limits.waiting:
            message = "too many waiting requests: try again later"
            self.finish(Job(connection, head, body, started), problem(503, message, connection.request_id))
        else:
            self.waiting += 1
            self.score(Job(connection, head, body, started))

    def complete(self, job: Job, response: Response) -> None:
        self.waiting -= 1
        self.finish(job, response)

    def finish(self, job: Job, response: Response) -> None:
        connection, head, body, started = job
        status, content, kind, headers = response
        request_id = connection.request_id  # sending the response may start the next request on this connection
        seconds = time.perf_counter() - started
        if head.path == SCORE:  # info endpoints are not counted
            # before the response is sent, so that a client that has it finds it counted
            self.counter.record(status, seconds, len(body), len(content))
        if head.method == "HEAD":
            connection.respond(status, content, kind, headers, without_body=True)
        else:
            connection.respond(status, content, kind, headers)
        self._log_request(request_id, head.method, head.path, status, seconds, len(body), len(content))

    def record_timeout(self, job: Job, response: Response) -> None:
        """Count and log a request whose worker is about to end, without the event loop."""
        seconds = time.perf_counter() - job.started
        size_in, size_out = len(job.body), len(response.body)
        self.counter.record(response.status, seconds, size_in, size_out)
        # the event loop, which normally updates the time and writes the log, is blocked
        self._at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        self._lines.append(
            self._log_line(
                job.connection.request_id, job.head.method, job.head.path, response.status, seconds, size_in, size_out
            )
        )
        self.write_log()

    def reject(self, connection: Connection, head: Optional[Head], status: int, message: str) -> None:
        if not connection.request_id:
            connection.request_id = self.new_id()
        response = problem(status, message, connection.request_id)
        self.counter.record(status, 0.0, 0, len(response.body))
        connection.respond(status, response.body, response.kind, response.headers, close=True)
        method, path = (head.method, head.path) if head is not None else ("-", "-")
        self._log_request(connection.request_id, method, path, status, 0.0, 0, len(response.body))

    def too_many_connections(self) -> bytes:
        """The response to a connection above the limit."""
        response = problem(503, "too many connections: try again later", self.new_id())
        self.counter.record(503, 0.0, 0, len(response.body))
        head = (
            f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: {response.kind}\r\n"
            f"content-length: {len(response.body)}\r\n{response.headers}connection: close\r\n\r\n"
        )
        return head.encode() + response.body

    def tick(self) -> None:
        """Once per second: expire connections and update the time that responses and log lines use."""
        self.now, self._wall = time.monotonic(), int(time.time())
        self.common = (
            f"server: runyard\r\ndate: {formatdate(self._wall, usegmt=True)}\r\nx-runyard-version: {self.version}\r\n"
        )
        self._at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._wall))
        self.counter.numbers[counters.BUSY] = self.waiting
        for connection in list(self.connections):
            if connection.deadline and connection.deadline < self.now:
                connection.expire()

    def reopen(self) -> None:
        """Reopen the request log after rotation."""
        before, self._log = self._log, os.open(self.folder.request_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if before >= 0:
            os.close(before)

    def write_log(self) -> None:
        lines, self._lines = self._lines, []
        try:
            os.write(self._log, "".join(lines).encode("utf-8", "backslashreplace"))
        except OSError:  # a full disk must not end a service
            return

    def _log_request(
        self, id: str, method: str, path: str, status: int, seconds: float, size_in: int, size_out: int
    ) -> None:
        if not self._lines and self._loop is not None:
            # written after all concurrent requests: one system call for many lines
            self._loop.call_soon(self.write_log)
        self._lines.append(self._log_line(id, method, path, status, seconds, size_in, size_out))

    def _log_line(
        self, id: str, method: str, path: str, status: int, seconds: float, size_in: int, size_out: int
    ) -> str:
        path = path if path == SCORE else json.dumps(path[:200])[1:-1]
        return (
            f'{{"at": "{self._at}", "id": "{id}", "method": "{method}", "path": "{path}", "status": {status}, '
            f'"ms": {seconds * 1e3:.3f}, "in": {size_in}, "out": {size_out}, "version": {self.version}, '
            f'"worker": {self.slot}}}\n'
        )
