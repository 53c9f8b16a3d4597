"""A minimal HTTP/1.1 client over a unix socket; it supports the subset of HTTP that the yard uses.

``http.client`` imports e-mail parsing and TLS, which costs 20 ms at every start of a `runyard` command and of every
script that contacts its yard.
"""

from __future__ import annotations

from runyard.posix import unix_socket

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import BinaryIO, Union

    Body = Union[bytes, BinaryIO, None]

_CHUNK_BYTES = 1 << 18


class ConnectionLost(OSError):
    """The server closed the connection in the middle of a response."""


class HttpConnection:
    """One connection. Each response must be read to its end before the next request is sent."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._response: HttpResponse | None = None

    def connect(self) -> None:
        self._socket = unix_socket.connect(self._path, self._timeout_s)

    def request(
        self, method: str, target: str, body: Body = None, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        """Send a request and return its response. A file is sent in chunks, so that it never has to fit in memory."""
        if self._response is not None and not self._response.complete:
            self.close()  # the caller stopped reading: the rest must not be mistaken for the next response
        if self._socket is None:
            self.connect()
        assert self._socket is not None
        fields = {"Host": "yard", **(headers or {})}
        content = body if isinstance(body, bytes) else b""
        if body is not None and not isinstance(body, bytes):
            fields["Transfer-Encoding"] = "chunked"
        elif body is not None or method != "GET":
            fields["Content-Length"] = str(len(content))
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()) + "\r\n"
        self._socket.sendall(head.encode("latin-1") + content)
        if body is not None and not isinstance(body, bytes):
            self._send_file(body)
        self._response = HttpResponse(self._socket)
        return self._response

    def set_timeout(self, timeout_s: float) -> None:
        """Limit the following reads: they raise TimeoutError, and data that has arrived is not lost."""
        if self._socket is not None:
            self._socket.settimeout(timeout_s)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = self._response = None

    def __del__(self) -> None:
        self.close()  # the end of a thread must not cause a ResourceWarning

    def _send_file(self, body: BinaryIO) -> None:
        assert self._socket is not None
        while data := body.read(_CHUNK_BYTES):
            self._socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))
        self._socket.sendall(b"0\r\n\r\n")


class HttpResponse:
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._raw = bytearray()  # as received
        self._body = bytearray()  # decoded, not read yet
        while (end := self._raw.find(b"\r\n\r\n")) < 0:
            self._receive()
        lines = bytes(self._raw[:end]).decode("latin-1").split("\r\n")
        del self._raw[: end + 4]
        self.status = int(lines[0].split(" ", 2)[1])
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._bytes_left = int(headers.get("content-length", 0))
        self.server = headers.get("server", "")
        self.complete = not self._chunked and self._bytes_left == 0
        self._decode()

    def receive_all(self) -> None:
        while not self.complete:
            self._fill()

    def read(self) -> bytes:
        self.receive_all()
        return self._take(len(self._body))

    def stream(self) -> Iterator[bytes]:
        """Yield the body in pieces as they arrive."""
        while self._body or not self.complete:
            if not self._body:
                self._fill()
            yield self._take(len(self._body))

    def readline(self) -> bytes:
        """The next line with its newline; empty at the end."""
        while (end := self._body.find(b"\n")) < 0:
            if self.complete:
                return self._take(len(self._body))
            self._fill()
        return self._take(end + 1)

    def _take(self, count: int) -> bytes:
        data = bytes(self._body[:count])
        del self._body[:count]
        return data

    def _fill(self) -> None:
        self._receive()
        self._decode()

    def _receive(self) -> None:
        data = self._socket.recv(_CHUNK_BYTES)
        if not data:
            raise ConnectionLost("the connection was closed in the middle of a response")
        self._raw += data

    def _decode(self) -> None:
        if not self._chunked:
            self._bytes_left -= len(self._raw)
            self._body += self._raw
            self._raw.clear()
            self.complete = self._bytes_left <= 0
            return
        while (line := self._raw.find(b"\r\n")) >= 0:
            size = int(bytes(self._raw[:line]).partition(b";")[0], 16)
            if len(self._raw) < line + 2 + size + 2:
                return
            self._body += self._raw[line + 2 : line + 2 + size]
            del self._raw[: line + 2 + size + 2]
            if size == 0:
                self.complete = True
                return
