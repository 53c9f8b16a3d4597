"""Requests to the yard. Every request can be repeated safely, because the client generates the ids."""

from __future__ import annotations

import json
import os
import socket
import threading
from urllib.parse import quote, urlencode

from runyard import __version__, errors
from runyard.client.home import home_folder
from runyard.client.http_unix import HttpConnection, HttpResponse
from runyard.errors import RunyardException, YardUnavailable
from runyard.posix import unix_socket
from runyard.spec.folder import HomeFolder

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Optional

    from runyard.client.http_unix import Body

_TIMEOUT_S = 120.0


class Connection:
    """A client of one yard. Safe for threads and forks: each thread of each process has its own socket."""

    def __init__(self, home: Path | str | None = None) -> None:
        self.home = home_folder(home)
        self.socket = HomeFolder(self.home).socket
        self._local = threading.local()

    def connect(self) -> None:
        """Open the socket that the next request uses, and start the yard if it is not running."""
        self._thread_connection()

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path, query=query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self._json("POST", path, body, query)

    def patch(self, path: str, body: Any = None) -> Any:
        return self._json("PATCH", path, body)

    def put(self, path: str, data: bytes, **query: Any) -> Any:
        headers = {"Content-Type": "application/octet-stream"}
        return _decoded(self._send("PUT", _target(path, query), data, headers).read())

    def delete(self, path: str, **query: Any) -> Any:
        return self._json("DELETE", path, query=query)

    def read(self, path: str, **query: Any) -> bytes:
        response = self._send("GET", _target(path, query))
        return response.read()

    def stream(self, path: str, **query: Any) -> Iterator[bytes]:
        """Yield the body in pieces as they arrive; it never has to fit in memory."""
        yield from self._send("GET", _target(path, query), buffered=False).stream()

    def download(self, path: str, destination: Path, on_progress: Callable[[int], object] | None = None) -> None:
        """Write the body to a file. ``on_progress`` receives the bytes of each piece; negative if it starts again."""
        for attempt in (1, 2, 3):
            received = 0
            with open(destination, "wb") as out:  # outside the try: an error of this disk is not a connection error
                chunks = self.stream(path)
                while True:
                    try:
                        chunk = next(chunks, b"")
                    except OSError as error:  # the yard exited during the download: the next one has the file too
                        if attempt == 3:
                            raise self._unavailable(error) from error
                        if on_progress is not None:
                            on_progress(-received)
                        break
                    if not chunk:
                        return
                    out.write(chunk)
                    received += len(chunk)
                    if on_progress is not None:
                        on_progress(len(chunk))

    def upload(self, path: str, source: BinaryIO) -> Any:
        """Send a file with PUT. If it is not seekable, it is read into memory, so that the request can be repeated."""
        seekable = source if source.seekable() else None
        body: Body = source if seekable else source.read()
        start = source.tell() if seekable else 0
        headers = {"Content-Type": "application/octet-stream"}
        response = self._send("PUT", quote(path), body, headers, rewind=(seekable, start))
        return _decoded(response.read())

    def events(self, path: str, *, tick_s: float = 0.0, **query: Any) -> Iterator[tuple[str, Any]]:
        """Yield server-sent events as (name, data) until the server ends the stream; uses a separate socket.

        Args:
            path: The endpoint.
            tick_s: Also yield ("tick", None) whenever no event has arrived for this long; 0 disables this.
            query: Query parameters.
        """
        connection = self._open(timeout_s=45.0)  # the server sends an event or a comment at least every 15 s
        try:
            response = connection.request("GET", _target(path, query), headers={"Accept": "text/event-stream"})
            if response.status >= 400:
                raise _error(response.status, response.read())
            if tick_s:
                connection.set_timeout(tick_s)
            name = ""
            while True:
                try:
                    line = response.readline()
                except socket.timeout:
                    if not tick_s:
                        raise
                    yield "tick", None
                    continue
                if not line:
                    return
                if line.startswith(b"event:"):
                    name = line[6:].strip().decode()
                elif line.startswith(b"data:"):
                    yield name, json.loads(line[5:])
        finally:
            connection.close()

    def is_running(self) -> bool:
        """True if the yard accepts connections; never starts it."""
        try:
            unix_socket.connect(self.socket, timeout_s=5).close()
        except OSError:
            return False
        return True

    def _json(self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        return _decoded(self._send(method, _target(path, query or {}), data, headers).read())

    def _send(
        self,
        method: str,
        target: str,
        body: Body = None,
        headers: dict[str, str] | None = None,
        rewind: tuple[Optional[BinaryIO], int] = (None, 0),
        buffered: bool = True,
    ) -> HttpResponse:
        for attempt in (1, 2, 3):
            connection = None
            try:
                connection = self._thread_connection()
                response = connection.request(method, target, body, headers)
                if buffered:  # the yard may also be killed in the middle of its response
                    response.receive_all()
                break
            except (OSError, ValueError) as error:
                if connection is not None:
                    connection.close()
                self._local.connection = None
                if isinstance(error, socket.timeout) or attempt == 3:
                    raise self._unavailable(error) from error
                if rewind[0] is not None:
                    rewind[0].seek(rewind[1])
        if response.status >= 400:
            raise _add_version_hint(_error(response.status, response.read()), response.server)
        return response

    def _unavailable(self, error: Exception) -> YardUnavailable:
        return YardUnavailable(
            f"no response from the yard of {self.home}: {error or type(error).__name__}",
            hint=f"see {HomeFolder(self.home).yard_log}",
        )

    def _thread_connection(self) -> HttpConnection:
        if getattr(self._local, "pid", None) != os.getpid() or getattr(self._local, "connection", None) is None:
            self._local.pid = os.getpid()
            self._local.connection = self._open(_TIMEOUT_S)
        connection: HttpConnection = self._local.connection
        return connection

    def _open(self, timeout_s: float) -> HttpConnection:
        connection = HttpConnection(str(self.socket), timeout_s)
        try:
            connection.connect()
        except OSError:
            from runyard.client.autostart import start_yard

            start_yard(self.home, self.is_running)
            connection.connect()
        return connection


def _add_version_hint(error: RunyardException, server: str) -> RunyardException:
    """After an upgrade the old yard may still be running and lack an endpoint that the new client uses."""
    if server != f"runyard/{__version__}":
        error.hint += f"{'; ' if error.hint else ''}the yard is {server or 'of an unknown version'}, this is runyard/"
        error.hint += f"{__version__}: `runyard yard stop`, and the next command starts the new one; runs continue"
    return error


def _target(path: str, query: dict[str, Any]) -> str:
    parameters = {k: json.dumps(v) if isinstance(v, bool) else v for k, v in query.items() if v is not None}
    return quote(path) + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")


def _decoded(data: bytes) -> Any:
    return json.loads(data) if data else None


def _error(status: int, data: bytes) -> RunyardException:
    try:
        content = json.loads(data)
        kind = getattr(errors, content["code"])
        error: RunyardException = kind(content["message"], hint=content.get("hint", ""), **content.get("facts", {}))
        return error
    except (ValueError, KeyError, AttributeError, TypeError):
        return YardUnavailable(f"HTTP status {status} from the yard: {data[:500].decode(errors='replace')}")
