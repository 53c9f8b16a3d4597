"""One connection of a client: HTTP/1.1, one request after another.

Written for this one purpose, because the request path is what a service is judged by, and because whatever a worker
needs would have to be installed into somebody else's Python. The head of a request that came before is not read again.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Optional, cast

from runyard.scoring.chunked_body import Chunks
from runyard.scoring.request_head import LONGEST, Head, Refused, parse

if TYPE_CHECKING:
    from runyard.scoring.dispatcher import Desk

REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
_PIPELINED = 256 * 1024
_LINGER_S = 5.0
_SLOWEST_BYTES_S = 64 * 1024
_KNOWN_HEADS = 256
_KNOWN_UP_TO = 2048

known_heads: dict[bytes, Head] = {}


class Connection(asyncio.Protocol):
    __slots__ = (
        *("_body", "_buffer", "_chunks", "_desk", "_discards", "_going", "_head", "_left", "_paused"),
        *("_held", "_receives", "_transport"),
        *("busy", "clogged", "deadline", "internal", "is_open", "request_id"),
    )

    def __init__(self, desk: Desk, internal: bool = False) -> None:
        self._desk = desk
        self.internal = internal  # from another worker of this service, which has looked at the key
        self._buffer = b""
        self._head: Optional[Head] = None
        self._body = bytearray()
        self._left = 0
        self._held = 0  # bytes that the desk counts as this connection's
        self._chunks: Optional[Chunks] = None
        self._discards = self._paused = self._going = self._receives = False
        self.busy = False
        self.is_open = True
        self.clogged = False  # the client does not take what it was sent
        self.deadline = 0.0  # for whatever is being waited for
        self.request_id = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.deadline = time.monotonic() + self._desk.limits.receive_s
        self._desk.connected(self)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_open = False
        self._hold(0)
        self._desk.disconnected(self)

    def data_received(self, data: bytes) -> None:
        if self._discards:
            return
        if self._left:
            self._take(data)
            return
        self._buffer = self._buffer + data if self._buffer else data
        if self.busy:
            if len(self._buffer) > _PIPELINED and not self._paused:
                self._paused = True
                self._transport.pause_reading()
            return
        self._go_on()

    def eof_received(self) -> bool:
        return self.busy  # whoever has only closed its own half still gets its answer

    def pause_writing(self) -> None:
        self.clogged = True
        self.deadline = self._desk.now + self._desk.limits.receive_s

    def resume_writing(self) -> None:
        self.clogged = False
        self._rest()
        if self._buffer and not self.busy:
            self._go_on()

    def answer(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: str = "",
        close: bool = False,
        without_body: bool = False,
    ) -> None:
        """``headers`` as lines, each with its end."""
        if not self.is_open:
            self.busy = False
            return
        desk = self._desk
        head = self._head
        ends = close or desk.draining or head is None or not head.keep_alive
        said = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n{desk.common}"
            f"x-request-id: {self.request_id}\r\n{headers}{'connection: close' if ends else 'connection: keep-alive'}"
            "\r\n\r\n"
        ).encode("latin-1", "replace")
        self._transport.write(said if without_body else said + body)
        self._done(ends)

    def relay(self, answer: bytes) -> None:
        """As another worker of this service wrote it."""
        ends = self._desk.draining or self._head is None or not self._head.keep_alive
        if ends:
            answer = answer.replace(b"connection: keep-alive", b"connection: close", 1)
        if self.is_open:
            self._transport.write(answer)
        self._done(ends)

    def refuse(self, status: int, message: str) -> None:
        """And read no further: what follows may be the rest of a body that nobody wants."""
        self.busy = True
        self._desk.refused(self, self._head, status, message)
        self._discards = True
        self._buffer, self._left, self._chunks = b"", 0, None
        self._body = bytearray()

    def expire(self) -> None:
        """The deadline has passed."""
        if self.clogged or self._discards:
            self._transport.abort()
        elif self.busy:
            self.deadline = 0.0  # the time for scoring is measured elsewhere
        elif self._receives:
            self.refuse(408, "the request did not arrive in time")
        else:
            self._transport.close()

    def close(self) -> None:
        self._transport.close()

    @property
    def is_idle(self) -> bool:
        return not (self.busy or self._receives or self.clogged)

    @property
    def socket(self) -> Any:
        return self._transport.get_extra_info("socket")

    def _done(self, ends: bool) -> None:
        self.busy = False
        if self._held:
            self._hold(0)
        if ends:
            self._discards = True
            if self._transport.can_write_eof():
                # closed at once, what the client is still sending would make the kernel take the answer back
                self._transport.write_eof()
            self.deadline = self._desk.now + _LINGER_S
            return
        self._rest()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if self._buffer and not self._going and not self.clogged:
            self._go_on()

    def _rest(self) -> None:
        self._receives = False
        self.deadline = self._desk.now + self._desk.limits.idle_s

    def _go_on(self) -> None:
        self._going = True
        try:
            while self._buffer and not (self.busy or self._discards or self.clogged):
                if not self._begin():
                    return
        except Refused as why:
            self.refuse(why.status, why.message)
        finally:
            self._going = False

    def _begin(self) -> bool:
        """Serves the next request if it is there as a whole."""
        desk, data = self._desk, self._buffer
        if self._chunks is not None:
            self._buffer = b""
            return self._chunked(data)
        end = data.find(b"\r\n\r\n")
        if end < 0 or end > LONGEST:
            self._head, self.request_id = None, ""
            if len(data) > LONGEST:
                raise Refused(431, f"the head of a request has at most {LONGEST} bytes")
            self._expects_more(0)
            return False
        self._head, self.request_id = None, desk.new_id()
        self._head = head = _read(data[:end])
        start = end + 4
        if head.request_id:
            self.request_id = head.request_id
        desk.look_at(self, head)
        if head.chunked:
            self._chunks, self._buffer = Chunks(desk.largest_body, desk.too_large), b""
            self._expects_more(0)
            if head.expects:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return self._chunked(data[start:])
        length = head.length
        if len(data) - start >= length:
            body = data[start : start + length]
            self._buffer = data[start + length :]
            self.busy = True
            desk.serve(self, head, body, time.perf_counter())
            return True
        self._hold(length)
        self._body = bytearray(data[start:])
        self._left = length - len(self._body)
        self._buffer = b""
        self._expects_more(length)
        if head.expects:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return False

    def _take(self, data: bytes) -> None:
        if len(data) > self._left:
            self._buffer = data[self._left :]
            data = data[: self._left]
        self._body += data
        self._left -= len(data)
        if self._left == 0:
            body, self._body = bytes(self._body), bytearray()
            assert self._head is not None
            self.busy = self._going = True
            self._desk.serve(self, self._head, body, time.perf_counter())
            self._going = False
            if self._buffer and not self.busy:
                self._go_on()

    def _chunked(self, data: bytes) -> bool:
        assert self._chunks is not None
        assert self._head is not None
        before = len(self._chunks.body)
        rest = self._chunks.feed(data)
        if rest is None:
            self.deadline += (len(self._chunks.body) - before) / _SLOWEST_BYTES_S
            self._hold(len(self._chunks.body))
            return False
        self._buffer, body, self._chunks = rest, bytes(self._chunks.body), None
        self.busy = True
        self._desk.serve(self, self._head, body, time.perf_counter())
        return True

    def _hold(self, count: int) -> None:
        """Many large bodies at once are more than a machine has, though each of them may be sent."""
        desk = self._desk
        desk.held += count - self._held
        self._held = count
        if count and desk.held > max(desk.limits.bodies_mb, desk.limits.body_mb) * 1e6:
            raise Refused(503, "this service has more to read than it can hold: come back in a moment")

    def _expects_more(self, size: int) -> None:
        """From the first byte on: a client that sends one more now and then does not get more time for it."""
        if not self._receives:
            self._receives = True
            self.deadline = time.monotonic() + self._desk.limits.receive_s
        self.deadline += size / _SLOWEST_BYTES_S


def _read(data: bytes) -> Head:
    head = known_heads.get(data)
    if head is None:
        head = parse(data)
        if len(data) <= _KNOWN_UP_TO:
            if len(known_heads) >= _KNOWN_HEADS:
                known_heads.clear()
            known_heads[data] = head
    return head
