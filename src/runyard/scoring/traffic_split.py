"""Two versions behind one name: of the requests that come to this worker, another version gets its share."""

from __future__ import annotations

import asyncio
from typing import Optional, cast

from runyard.scoring.dispatcher import Desk, Job
from runyard.scoring.http_connection import Connection
from runyard.scoring.request_head import Head

_LINKS = 64
_NOT_PASSED = {"connection", "content-length", "transfer-encoding", "expect", "authorization", "x-request-id"}


class Sharing:
    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop, shares: dict[int, int]) -> None:
        """``shares``: of all versions, this one's too."""
        self._desk, self._loop, self._shares = desk, loop, shares
        self._credit = dict.fromkeys(shares, 0)
        self._total = sum(shares.values())
        self._idle: dict[int, list[_Link]] = {version: [] for version in shares}

    def pass_on(self, connection: Connection, head: Head, body: bytes, began: float) -> bool:
        """False: it is this version's own."""
        chosen = self._next()
        if chosen == self._desk.version:
            return False
        job = Job(connection, head, body, began)
        idle = self._idle[chosen]
        while idle:
            link = idle.pop()
            if link.is_open:
                link.send(job, _request(job))
                return True
        self._loop.create_task(self._dial(chosen, job))
        return True

    def back(self, link: _Link, version: int) -> None:
        if len(self._idle[version]) < _LINKS:
            self._idle[version].append(link)
        else:
            link.close()

    def instead(self, job: Job) -> None:
        """The other version does not answer: better its neighbour than nobody."""
        self._desk.waiting += 1
        self._desk.score(job)

    def close(self) -> None:
        for links in self._idle.values():
            for link in links:
                link.close()

    def _next(self) -> int:
        """Each version in its turn, smoothly: 90 and 10 is one of every ten, not ten of every hundred."""
        credit = self._credit
        for version, share in self._shares.items():
            credit[version] += share
        chosen = max(credit, key=lambda version: credit[version])
        credit[chosen] -= self._total
        return chosen

    async def _dial(self, version: int, job: Job) -> None:
        path = str(self._desk.folder.socket(version))
        try:
            _, link = await self._loop.create_unix_connection(lambda: _Link(self, version), path)
        except OSError:
            self.instead(job)
            return
        link.send(job, _request(job))


class _Link(asyncio.Protocol):
    """To a worker of another version: one request at a time."""

    def __init__(self, sharing: Sharing, version: int) -> None:
        self._sharing, self._version = sharing, version
        self._job: Optional[Job] = None
        self._data = bytearray()
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_open = False
        job, self._job = self._job, None
        if job is not None:  # it died over this one, or was about to end when it came
            self._sharing.instead(job)

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end]).lower()
        begin = head.index(b"content-length:") + 15
        length = int(head[begin:].split(b"\r\n", 1)[0])
        whole = end + 4 + length
        if len(self._data) < whole:
            return
        answer, self._data = bytes(self._data[:whole]), bytearray()
        job, self._job = self._job, None
        if job is not None:
            job.connection.relay(answer)
        if b"connection: close" in head:
            self.close()
        else:
            self._sharing.back(self, self._version)

    def send(self, job: Job, request: bytes) -> None:
        self._job = job
        self._transport.write(request)

    def close(self) -> None:
        self._transport.close()


def _request(job: Job) -> bytes:
    head = job.head
    target = head.path + (f"?{head.query}" if head.query else "")
    kept = "".join(f"{name}: {value}\r\n" for name, value in head.headers.items() if name not in _NOT_PASSED)
    said = f"{head.method} {target} HTTP/1.1\r\n{kept}x-request-id: {job.connection.request_id}\r\n"
    return f"{said}content-length: {len(job.body)}\r\n\r\n".encode("latin-1") + job.body
