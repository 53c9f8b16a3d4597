"""Where requests are decided upon: who may ask, what is asked, who answers it, and what is written down about it."""

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
from runyard.scoring.request_head import Head, Refused
from runyard.scoring.responses import Answer, problem
from runyard.spec.service import Limits, ServiceFolder

if TYPE_CHECKING:
    from runyard.scoring.traffic_split import Sharing

SCORE = "/score"


class Job(NamedTuple):
    """One request that is to be scored."""

    connection: Connection
    head: Head
    body: bytes
    began: float


class Desk:
    """All of it runs in the thread of the event loop. ``score`` is given what is to be scored, and says when it was."""

    def __init__(self, folder: ServiceFolder, service: str, version: int, place: int) -> None:
        self.folder, self.service, self.version, self.place = folder, service, version, place
        self.limits = Limits()
        self.keys: frozenset[str] = frozenset()
        self.methods: tuple[str, ...] = ("POST",)  # of /score
        self.score: Callable[[Job], None] = lambda job: None
        self.sharing: Optional[Sharing] = None
        self.openapi: dict[str, Any] = {}
        self.draining = False
        self.waiting = 0
        self.held = 0  # bytes of bodies
        self.connections: set[Connection] = set()
        self.now = time.monotonic()
        self._wall = 0
        self.common = ""
        folder.counts.mkdir(exist_ok=True)
        self.counter = Counter(folder.counts / f"{version}-{place}")
        self.counter.numbers[counters.PID] = os.getpid()
        self.counter.numbers[counters.BUSY] = self.counter.numbers[counters.CONNECTIONS] = 0
        self._prefix = os.urandom(6).hex()
        self._number = 0
        self._lines: list[str] = []
        self._log = -1
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self.reopen()
        self.tick()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def apply(self, limits: Limits, keys: frozenset[str]) -> None:
        self.limits, self.keys = limits, keys

    @property
    def largest_body(self) -> int:
        return int(self.limits.body_mb * 1e6)

    @property
    def too_large(self) -> str:
        return f"a body has at most {self.limits.body_mb:g} MB here"

    def new_id(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number:x}"

    def connected(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.counter.numbers[counters.CONNECTIONS] = len(self.connections)

    def disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.counter.numbers[counters.CONNECTIONS] = len(self.connections)

    def look_at(self, connection: Connection, head: Head) -> None:
        """Before its body is read. Raises Refused."""
        if head.length > self.largest_body:
            raise Refused(413, self.too_large)
        if (
            self.keys
            and not connection.internal
            and head.token not in self.keys
            and head.path not in info_endpoints.OPEN
        ):
            why = "this service asks for a key" if head.token is None else "that is not a key of this service"
            raise Refused(401, f"{why}: send `Authorization: Bearer KEY`")

    def serve(self, connection: Connection, head: Head, body: bytes, began: float) -> None:
        if head.path != SCORE:
            self.finish(Job(connection, head, body, began), info_endpoints.answer(self, head, connection.request_id))
        elif head.method not in self.methods:
            self.finish(
                Job(connection, head, body, began),
                info_endpoints.not_allowed(head.method, self.methods, connection.request_id),
            )
        elif (
            self.sharing is not None and not connection.internal and self.sharing.pass_on(connection, head, body, began)
        ):
            self.counter.numbers[counters.PASSED_ON] += 1
        elif self.waiting >= self.limits.waiting:
            said = "this service has more requests than it can answer: come back in a moment"
            self.finish(Job(connection, head, body, began), problem(503, said, connection.request_id))
        else:
            self.waiting += 1
            self.score(Job(connection, head, body, began))

    def scored(self, job: Job, answer: Answer) -> None:
        self.waiting -= 1
        self.finish(job, answer)

    def finish(self, job: Job, answer: Answer) -> None:
        connection, head, body, began = job
        status, content, kind, headers = answer
        request_id = connection.request_id  # the next request may be begun as soon as this one is answered
        seconds = time.perf_counter() - began
        if head.path == SCORE:  # questions about the service itself are nobody's latency
            # before the answer goes out: whoever has it finds it counted
            self.counter.answered(status, seconds, len(body), len(content))
        if head.method == "HEAD":
            connection.answer(status, content, kind, headers, without_body=True)
        else:
            connection.answer(status, content, kind, headers)
        self._note(request_id, head.method, head.path, status, seconds, len(body), len(content))

    def gave_up(self, job: Job, answer: Answer) -> None:
        """A request whose worker ends before it: counted and written down at once, past the event loop."""
        seconds = time.perf_counter() - job.began
        size_in, size_out = len(job.body), len(answer.body)
        self.counter.answered(answer.status, seconds, size_in, size_out)
        # the loop, which knows the time and writes, stands still or is cut off
        self._at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        self._lines.append(
            self._line(
                job.connection.request_id, job.head.method, job.head.path, answer.status, seconds, size_in, size_out
            )
        )
        self.write_log()

    def refused(self, connection: Connection, head: Optional[Head], status: int, message: str) -> None:
        if not connection.request_id:
            connection.request_id = self.new_id()
        said = problem(status, message, connection.request_id)
        self.counter.answered(status, 0.0, 0, len(said.body))
        connection.answer(status, said.body, said.kind, said.headers, close=True)
        method, path = (head.method, head.path) if head is not None else ("-", "-")
        self._note(connection.request_id, method, path, status, 0.0, 0, len(said.body))

    def too_many(self) -> bytes:
        """For a connection that is one too many."""
        said = problem(503, "this service has more connections than it can keep", self.new_id())
        self.counter.answered(503, 0.0, 0, len(said.body))
        head = f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: {said.kind}\r\ncontent-length: {len(said.body)}\r\n"
        return f"{head}{said.headers}connection: close\r\n\r\n".encode() + said.body

    def tick(self) -> None:
        """Once a second: what hangs is ended, and the time is looked at for all requests of the next second."""
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
        """The log was moved away because it had become too long."""
        before, self._log = self._log, os.open(self.folder.request_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if before >= 0:
            os.close(before)

    def write_log(self) -> None:
        lines, self._lines = self._lines, []
        try:
            os.write(self._log, "".join(lines).encode("utf-8", "backslashreplace"))
        except OSError:  # a full disk must not end a service
            return

    def _note(self, id: str, method: str, path: str, status: int, seconds: float, size_in: int, size_out: int) -> None:
        if not self._lines and self._loop is not None:
            # written when all that is there together is answered: one system call for many requests, and none lost
            self._loop.call_soon(self.write_log)
        self._lines.append(self._line(id, method, path, status, seconds, size_in, size_out))

    def _line(self, id: str, method: str, path: str, status: int, seconds: float, size_in: int, size_out: int) -> str:
        path = path if path == SCORE else json.dumps(path[:200])[1:-1]
        return (
            f'{{"at": "{self._at}", "id": "{id}", "method": "{method}", "path": "{path}", "status": {status}, '
            f'"ms": {seconds * 1e3:.3f}, "in": {size_in}, "out": {size_out}, "version": {self.version}, '
            f'"worker": {self.place}}}\n'
        )
