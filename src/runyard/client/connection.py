"""Requests to the yard. Each may be sent twice: ids are made by the client, so a second one changes nothing."""

from __future__ import annotations

import json
import os
import socket
import threading
from urllib.parse import quote, urlencode

from runyard import __version__, errors
from runyard.client.home import home_folder
from runyard.client.http_unix import Answer, Channel
from runyard.errors import RunyardException, YardUnavailable
from runyard.spec.folder import HomeFolder

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Optional

    from runyard.client.http_unix import Body

_TIMEOUT_S = 120.0


class Connection:
    """One yard. Safe for threads and forks: each thread of each process has its own socket."""

    def __init__(self, home: Path | str | None = None) -> None:
        self.home = home_folder(home)
        self.socket = HomeFolder(self.home).socket
        self._own = threading.local()

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

    def pieces(self, path: str, **query: Any) -> Iterator[bytes]:
        """The body as it arrives, never whole in memory."""
        yield from self._send("GET", _target(path, query), whole=False).pieces()

    def download(self, path: str, destination: Path) -> None:
        for attempt in (1, 2, 3):
            with open(destination, "wb") as out:  # not in the try: an error of this disk is not the yard's
                pieces = self.pieces(path)
                while True:
                    try:
                        piece = next(pieces, b"")
                    except OSError as error:  # the yard went away in the middle: the next one has the file too
                        if attempt == 3:
                            raise self._silent(error) from error
                        break
                    if not piece:
                        return
                    out.write(piece)

    def upload(self, path: str, source: BinaryIO) -> Any:
        """The source must be seekable or small: a broken connection sends it again from its beginning."""
        seekable = source if source.seekable() else None
        body: Body = source if seekable else source.read()
        start = source.tell() if seekable else 0
        headers = {"Content-Type": "application/octet-stream"}
        response = self._send("PUT", quote(path), body, headers, rewind=(seekable, start))
        return _decoded(response.read())

    def events(self, path: str, *, tick_s: float = 0.0, **query: Any) -> Iterator[tuple[str, Any]]:
        """Server-sent events as (name, data), until the server ends the stream. One socket of its own.

        With ``tick_s`` there is also a ("tick", None) whenever nothing came for that long.
        """
        channel = self._open(timeout_s=45.0)  # the server says something at least every 15 s
        try:
            response = channel.ask("GET", _target(path, query), headers={"Accept": "text/event-stream"})
            if response.status >= 400:
                raise _problem(response.status, response.read())
            if tick_s:
                channel.wait_at_most(tick_s)
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
            channel.close()

    def answers(self) -> bool:
        probe = socket.socket(socket.AF_UNIX)
        try:
            probe.settimeout(5)
            probe.connect(str(self.socket))
            return True
        except OSError:
            return False
        finally:
            probe.close()

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
        whole: bool = True,
    ) -> Answer:
        for attempt in (1, 2, 3):
            channel = None
            try:
                channel = self._channel()
                response = channel.ask(method, target, body, headers)
                if whole:  # a yard may also be killed in the middle of its answer
                    response.arrive()
                break
            except (OSError, ValueError) as error:
                if channel is not None:
                    channel.close()
                self._own.channel = None
                if isinstance(error, socket.timeout) or attempt == 3:
                    raise self._silent(error) from error
                if rewind[0] is not None:
                    rewind[0].seek(rewind[1])
        if response.status >= 400:
            raise _of_another_version(_problem(response.status, response.read()), response.server)
        return response

    def _silent(self, error: Exception) -> YardUnavailable:
        return YardUnavailable(
            f"the yard of {self.home} did not answer: {error or type(error).__name__}",
            hint=f"see {HomeFolder(self.home).yard_log}",
        )

    def _channel(self) -> Channel:
        if getattr(self._own, "pid", None) != os.getpid() or getattr(self._own, "channel", None) is None:
            self._own.pid = os.getpid()
            self._own.channel = self._open(_TIMEOUT_S)
        channel: Channel = self._own.channel
        return channel

    def _open(self, timeout_s: float) -> Channel:
        channel = Channel(str(self.socket), timeout_s)
        try:
            channel.connect()
        except OSError:
            from runyard.client.autostart import start_yard

            start_yard(self.home, self.answers)
            channel.connect()
        return channel


def _of_another_version(error: RunyardException, server: str) -> RunyardException:
    """After an upgrade the old yard may still be here, and not know what the new client asks for."""
    if server != f"runyard/{__version__}":
        error.hint += f"{'; ' if error.hint else ''}the yard is {server or 'of an unknown version'}, this is runyard/"
        error.hint += f"{__version__}: `runyard yard stop`, and the next command starts the new one; runs go on"
    return error


def _target(path: str, query: dict[str, Any]) -> str:
    given = {k: json.dumps(v) if isinstance(v, bool) else v for k, v in query.items() if v is not None}
    return quote(path) + (f"?{urlencode(given, doseq=True)}" if given else "")


def _decoded(data: bytes) -> Any:
    return json.loads(data) if data else None


def _problem(status: int, data: bytes) -> RunyardException:
    try:
        said = json.loads(data)
        kind = getattr(errors, said["code"])
        error: RunyardException = kind(said["message"], hint=said.get("hint", ""), **said.get("facts", {}))
        return error
    except (ValueError, KeyError, AttributeError, TypeError):
        return YardUnavailable(f"the yard answered {status}: {data[:500].decode(errors='replace')}")
