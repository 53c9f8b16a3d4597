"""HTTP/1.1 over the yard's unix socket: as much of it as the yard speaks.

The standard library's client brings the whole of e-mail parsing and TLS with it, 20 ms at every start of every
`runyard` command and of every script that asks its yard something. What is needed is a page of code.
"""

from __future__ import annotations

import socket

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO, Union

    Body = Union[bytes, BinaryIO, None]

_CHUNK = 1 << 18


class Broken(OSError):
    """The other side went away in the middle of an answer."""


class Channel:
    """One connection. A request is sent, its answer is read to the end, then the next one may follow."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._answer: Answer | None = None

    def connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(self._timeout_s)
        try:
            self._socket.connect(self._path)
        except OSError:
            self.close()
            raise

    def ask(self, method: str, target: str, body: Body = None, headers: dict[str, str] | None = None) -> Answer:
        """A body that is a file travels in chunks, so that it is never whole in memory."""
        if self._answer is not None and not self._answer.complete:
            self.close()  # somebody stopped reading in the middle: the rest must not be taken for the next answer
        if self._socket is None:
            self.connect()
        assert self._socket is not None
        said = {"Host": "yard", **(headers or {})}
        whole = body if isinstance(body, bytes) else b""
        if body is not None and not isinstance(body, bytes):
            said["Transfer-Encoding"] = "chunked"
        elif body is not None or method != "GET":
            said["Content-Length"] = str(len(whole))
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in said.items()) + "\r\n"
        self._socket.sendall(head.encode("latin-1") + whole)
        if body is not None and not isinstance(body, bytes):
            self._send_file(body)
        self._answer = Answer(self._socket)
        return self._answer

    def wait_at_most(self, timeout_s: float) -> None:
        """For the reads that follow: TimeoutError after that time, and nothing that had arrived is lost."""
        if self._socket is not None:
            self._socket.settimeout(timeout_s)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = self._answer = None

    def __del__(self) -> None:
        self.close()  # with its thread, not with a warning

    def _send_file(self, body: BinaryIO) -> None:
        assert self._socket is not None
        while data := body.read(_CHUNK):
            self._socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))
        self._socket.sendall(b"0\r\n\r\n")


class Answer:
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._raw = bytearray()  # as it came
        self._body = bytearray()  # freed of its chunks, not read yet
        while (end := self._raw.find(b"\r\n\r\n")) < 0:
            self._receive()
        lines = bytes(self._raw[:end]).decode("latin-1").split("\r\n")
        del self._raw[: end + 4]
        self.status = int(lines[0].split(" ", 2)[1])
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._left = int(headers.get("content-length", 0))
        self.server = headers.get("server", "")
        self.complete = not self._chunked and self._left == 0
        self._decode()

    def arrive(self) -> None:
        """Returns when all of it is here."""
        while not self.complete:
            self._fill()

    def read(self) -> bytes:
        self.arrive()
        return self._take(len(self._body))

    def pieces(self) -> Iterator[bytes]:
        """What has arrived, as it arrives."""
        while self._body or not self.complete:
            if not self._body:
                self._fill()
            yield self._take(len(self._body))

    def readline(self) -> bytes:
        """With its newline; empty at the end."""
        while (end := self._body.find(b"\n")) < 0:
            if self.complete:
                return self._take(len(self._body))
            self._fill()
        return self._take(end + 1)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._body[:count])
        del self._body[:count]
        return taken

    def _fill(self) -> None:
        self._receive()
        self._decode()

    def _receive(self) -> None:
        data = self._socket.recv(_CHUNK)
        if not data:
            raise Broken("the connection was closed in the middle of an answer")
        self._raw += data

    def _decode(self) -> None:
        if not self._chunked:
            self._left -= len(self._raw)
            self._body += self._raw
            self._raw.clear()
            self.complete = self._left <= 0
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
