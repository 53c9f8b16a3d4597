"""One HTTP/1.1 connection of a client.

A dedicated implementation, because the request path determines the speed of a service and dependencies would have to
be installed into the user's environment. Heads of repeated requests are cached.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Optional, cast

from runyard.scoring.chunked_body import ChunkedBody
from runyard.scoring.request_head import MAX_HEAD_BYTES, Head, HttpError, parse

if TYPE_CHECKING:
    from runyard.scoring.dispatcher import Dispatcher
    from runyard.scoring.receive_buffer import ReceiveBuffer

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
_MAX_PIPELINED_BYTES = 256 * 1024
_LINGER_S = 5.0
_MIN_BYTES_PER_S = 64 * 1024
_MAX_CACHED_HEADS = 256
_MAX_CACHED_BYTES = 2048
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_DISCARDED = memoryview(bytearray(64 * 1024))  # receives bytes that are ignored

head_cache: dict[bytes, Head] = {}


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        *("_buffer", "_chunked_body", "_discarding", "_dispatcher", "_head", "_held_bytes", "_paused"),
        *("_processing", "_received", "_receiving", "_remaining", "_transport"),
        *("busy", "deadline", "internal", "is_open", "request_id", "write_blocked"),
    )

    def __init__(self, dispatcher: Dispatcher, received: ReceiveBuffer, internal: bool = False) -> None:
        self._dispatcher, self._received = dispatcher, received
        self.internal = internal  # forwarded by another worker of this service, which has checked the key
        self._buffer = b""  # bytes at the end of _received that were not parsed yet
        self._head: Optional[Head] = None
        self._remaining = 0
        self._held_bytes = 0  # this connection's share of dispatcher.held_bytes
        self._chunked_body: Optional[ChunkedBody] = None
        self._discarding = self._paused = self._processing = self._receiving = False
        self.busy = False
        self.is_open = True
        self.write_blocked = False  # the client does not read what was sent
        self.deadline = 0.0  # of the current wait
        self.request_id = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.deadline = time.monotonic() + self._dispatcher.limits.receive_s
        self._dispatcher.connected(self)
        received = self._received
        if received.fill > received.start:  # continue the request that the connection's previous worker had
            self._buffer = bytes(received.data[received.start : received.fill])
            self._process_buffer()

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_open = False
        self._set_held_bytes(0)
        self._received.release()
        self._dispatcher.disconnected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        received = self._received
        if self._discarding:
            return _DISCARDED
        if received.answered:
            received.next_request(is_flushed=not self._transport.get_write_buffer_size())
        return received.room()

    def buffer_updated(self, count: int) -> None:
        if self._discarding:
            return
        received = self._received
        begin = received.fill
        received.add(count)
        if self._remaining:
            self._receive_body(count)
            return
        data = bytes(received.data[begin : received.fill])
        self._buffer = self._buffer + data if self._buffer else data
        if self.busy:
            if len(self._buffer) > _MAX_PIPELINED_BYTES and not self._paused:
                self._paused = True
                self._transport.pause_reading()
            return
        self._process_buffer()

    def eof_received(self) -> bool:
        return self.busy  # a client that has closed only its sending side still gets its response

    def pause_writing(self) -> None:
        self.write_blocked = True
        self.deadline = self._dispatcher.now + self._dispatcher.limits.receive_s

    def resume_writing(self) -> None:
        self.write_blocked = False
        self._set_idle()
        if self._buffer and not self.busy:
            self._process_buffer()

    def respond(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: str = "",
        close: bool = False,
        without_body: bool = False,
    ) -> None:
        """Send a response. ``headers`` are complete lines, including line ends."""
        if not self.is_open:
            self.busy = False
            return
        dispatcher = self._dispatcher
        head = self._head
        must_close = close or dispatcher.draining or head is None or not head.keep_alive
        response_head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n{dispatcher.common}"
            f"x-request-id: {self.request_id}\r\n{headers}"
            f"connection: {'close' if must_close else 'keep-alive'}\r\n\r\n"
        ).encode("latin-1", "replace")
        response = response_head if without_body else response_head + body
        self._received.prepare_response(len(response), len(self._buffer))
        self._transport.write(response)
        self._finish_response(must_close)

    def relay_response(self, response: bytes) -> None:
        """Send a response that was written by another worker of this service."""
        must_close = self._dispatcher.draining or self._head is None or not self._head.keep_alive
        if must_close:
            response = response.replace(b"connection: keep-alive", b"connection: close", 1)
        if self.is_open:
            self._received.prepare_response(len(response), len(self._buffer))
            self._transport.write(response)
        self._finish_response(must_close)

    def reject(self, status: int, message: str) -> None:
        """Send an error and stop reading: the rest of an unwanted body may follow."""
        self.busy = True
        self._dispatcher.reject(self, self._head, status, message)
        self._discarding = True
        self._buffer, self._remaining, self._chunked_body = b"", 0, None

    def expire(self) -> None:
        """The deadline has passed."""
        if self.write_blocked or self._discarding:
            self._transport.abort()
        elif self.busy:
            self.deadline = 0.0  # the scoring timeout is enforced elsewhere
        elif self._receiving:
            self.reject(408, "the request did not arrive in time")
        else:
            self._transport.close()

    def close(self) -> None:
        self._transport.close()

    def begin_scoring(self) -> None:
        """Note that the scoring function has the request: it may be the reason if the worker crashes now."""
        self._received.begin_scoring()

    @property
    def survives_worker(self) -> bool:
        """True if the supervisor passes the connection to another worker when this one ends."""
        return self._received.is_shared

    @property
    def shared_descriptors(self) -> tuple[int, int, int]:
        """The id of the connection, with its descriptor and that of its receive buffer."""
        return self._received.id, self.socket.fileno(), self._received.file

    @property
    def is_idle(self) -> bool:
        return not (self.busy or self._receiving or self.write_blocked)

    @property
    def socket(self) -> Any:
        return self._transport.get_extra_info("socket")

    def _finish_response(self, must_close: bool) -> None:
        self.busy = False
        if self._held_bytes:
            self._set_held_bytes(0)
        if must_close:
            self._discarding = True
            self._received.retire()
            if self._transport.can_write_eof():
                # not close(): while the client is sending, the kernel would reset the connection and drop the response
                self._transport.write_eof()
            self.deadline = self._dispatcher.now + _LINGER_S
            return
        self._set_idle()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if self._buffer and not self._processing and not self.write_blocked:
            self._process_buffer()

    def _set_idle(self) -> None:
        self._receiving = False
        self.deadline = self._dispatcher.now + self._dispatcher.limits.idle_s

    def _process_buffer(self) -> None:
        self._processing = True
        try:
            while self._buffer and not (self.busy or self._discarding or self.write_blocked):
                if not self._start_request():
                    return
        except HttpError as error:
            self.reject(error.status, error.message)
        finally:
            self._processing = False

    def _start_request(self) -> bool:
        """Serve the next request if it is complete."""
        dispatcher, data = self._dispatcher, self._buffer
        if self._chunked_body is not None:
            self._buffer = b""
            return self._chunked(data)
        end = data.find(b"\r\n\r\n")
        if end < 0 or end > MAX_HEAD_BYTES:
            self._head, self.request_id = None, ""
            if len(data) > MAX_HEAD_BYTES:
                raise HttpError(431, f"request head exceeds {MAX_HEAD_BYTES} bytes")
            self._extend_deadline(0)
            return False
        self._head, self.request_id = None, dispatcher.new_id()
        self._head = head = _read(data[:end])
        start = end + 4
        if head.request_id:
            self.request_id = head.request_id
        dispatcher.check_head(self, head)
        if head.chunked:
            self._chunked_body, self._buffer = ChunkedBody(dispatcher.largest_body, dispatcher.too_large), b""
            self._extend_deadline(0)
            if head.expects:
                self._send_continue()
            return self._chunked(data[start:])
        length = head.length
        if len(data) - start >= length:
            body = data[start : start + length]
            self._buffer = data[start + length :]
            self.busy = True
            dispatcher.serve(self, head, body, time.perf_counter())
            return True
        self._set_held_bytes(length)
        self._remaining = length - (len(data) - start)
        self._received.reserve(self._remaining)
        self._buffer = b""
        self._extend_deadline(length)
        if head.expects:
            self._send_continue()
        return False

    def _send_continue(self) -> None:
        self._transport.write(_CONTINUE)
        self._received.add_interim_response(len(_CONTINUE))

    def _receive_body(self, count: int) -> None:
        excess = max(0, count - self._remaining)  # the begin of the next request
        self._remaining -= count - excess
        if self._remaining == 0:
            assert self._head is not None
            received = self._received
            end = received.fill - excess
            body = bytes(received.data[end - self._head.length : end])
            self._buffer = bytes(received.data[end : received.fill])
            self.busy = self._processing = True
            self._dispatcher.serve(self, self._head, body, time.perf_counter())
            self._processing = False
            if self._buffer and not self.busy:
                self._process_buffer()

    def _chunked(self, data: bytes) -> bool:
        assert self._chunked_body is not None
        assert self._head is not None
        before = len(self._chunked_body.body)
        rest = self._chunked_body.feed(data)
        if rest is None:
            self.deadline += (len(self._chunked_body.body) - before) / _MIN_BYTES_PER_S
            self._set_held_bytes(len(self._chunked_body.body))
            return False
        self._buffer, body, self._chunked_body = rest, bytes(self._chunked_body.body), None
        self.busy = True
        self._dispatcher.serve(self, self._head, body, time.perf_counter())
        return True

    def _set_held_bytes(self, count: int) -> None:
        """Update the total size of incomplete bodies, which is limited in addition to the size of each body."""
        dispatcher = self._dispatcher
        dispatcher.held_bytes += count - self._held_bytes
        self._held_bytes = count
        if count and dispatcher.held_bytes > max(dispatcher.limits.bodies_mb, dispatcher.limits.body_mb) * 1e6:
            raise HttpError(503, "too many large requests: try again later")

    def _extend_deadline(self, size: int) -> None:
        """Start the deadline at the first byte: sending a byte now and then does not extend it."""
        if not self._receiving:
            self._receiving = True
            self.deadline = time.monotonic() + self._dispatcher.limits.receive_s
        self.deadline += size / _MIN_BYTES_PER_S


def _read(data: bytes) -> Head:
    head = head_cache.get(data)
    if head is None:
        head = parse(data)
        if len(data) <= _MAX_CACHED_BYTES:
            if len(head_cache) >= _MAX_CACHED_HEADS:
                head_cache.clear()
            head_cache[data] = head
    return head
