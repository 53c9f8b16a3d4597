"""Splits traffic between versions: forwards a share of this worker's requests to another version."""

from __future__ import annotations

import asyncio
from typing import Optional, cast

from runyard.scoring.dispatcher import Dispatcher, Job
from runyard.scoring.http_connection import Connection
from runyard.scoring.request_head import Head

_MAX_LINKS = 64
_DROPPED_HEADERS = {"connection", "content-length", "transfer-encoding", "expect", "authorization", "x-request-id"}


class TrafficSplit:
    def __init__(self, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop, shares: dict[int, int]) -> None:
        """``shares`` contains all versions, including this one."""
        self._dispatcher, self._loop, self._shares = dispatcher, loop, shares
        self._credit = dict.fromkeys(shares, 0)
        self._total = sum(shares.values())
        self._idle: dict[int, list[_Link]] = {version: [] for version in shares}

    def forward(self, connection: Connection, head: Head, body: bytes, started: float) -> bool:
        """Forward a request; False if this version should score it."""
        version = self._next_version()
        if version == self._dispatcher.version:
            return False
        job = Job(connection, head, body, started)
        idle = self._idle[version]
        while idle:
            link = idle.pop()
            if link.is_open:
                link.send(job, _request(job))
                return True
        self._loop.create_task(self._connect(version, job))
        return True

    def release(self, link: _Link, version: int) -> None:
        if len(self._idle[version]) < _MAX_LINKS:
            self._idle[version].append(link)
        else:
            link.close()

    def score_locally(self, job: Job) -> None:
        """Score the request here because the other version does not respond."""
        self._dispatcher.waiting += 1
        self._dispatcher.score(job)

    def close(self) -> None:
        for links in self._idle.values():
            for link in links:
                link.close()

    def _next_version(self) -> int:
        """Smooth weighted round-robin: shares 90 and 10 send every tenth request, not ten of every hundred."""
        credit = self._credit
        for version, share in self._shares.items():
            credit[version] += share
        selected = max(credit, key=lambda version: credit[version])
        credit[selected] -= self._total
        return selected

    async def _connect(self, version: int, job: Job) -> None:
        path = str(self._dispatcher.folder.socket(version))
        try:
            _, link = await self._loop.create_unix_connection(lambda: _Link(self, version), path)
        except OSError:
            self.score_locally(job)
            return
        link.send(job, _request(job))


class _Link(asyncio.Protocol):
    """A connection to a worker of another version, used for one request at a time."""

    def __init__(self, traffic_split: TrafficSplit, version: int) -> None:
        self._traffic_split, self._version = traffic_split, version
        self._job: Optional[Job] = None
        self._data = bytearray()
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_open = False
        job, self._job = self._job, None
        if job is not None:  # it crashed, or was about to end
            self._traffic_split.score_locally(job)

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end]).lower()
        begin = head.index(b"content-length:") + 15
        length = int(head[begin:].split(b"\r\n", 1)[0])
        size = end + 4 + length
        if len(self._data) < size:
            return
        response, self._data = bytes(self._data[:size]), bytearray()
        job, self._job = self._job, None
        if job is not None:
            job.connection.relay_response(response)
        if b"connection: close" in head:
            self.close()
        else:
            self._traffic_split.release(self, self._version)

    def send(self, job: Job, request: bytes) -> None:
        self._job = job
        self._transport.write(request)

    def close(self) -> None:
        self._transport.close()


def _request(job: Job) -> bytes:
    head = job.head
    target = head.path + (f"?{head.query}" if head.query else "")
    headers = "".join(f"{name}: {value}\r\n" for name, value in head.headers.items() if name not in _DROPPED_HEADERS)
    request_head = f"{head.method} {target} HTTP/1.1\r\n{headers}x-request-id: {job.connection.request_id}\r\n"
    return f"{request_head}content-length: {len(job.body)}\r\n\r\n".encode("latin-1") + job.body
