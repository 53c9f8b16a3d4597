"""What crosses between the yard and a host: a line of JSON, followed by as many bytes as it says."""

from __future__ import annotations

import json
import threading
from typing import IO, Any, Optional

CHUNK = 256 * 1024


class Cut(Exception):
    """The other side is gone; its text says why, where that is known."""


class Writer:
    """May be used from any thread: each frame goes out whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, head: dict[str, Any], body: bytes = b"") -> None:
        if body:
            head = {**head, "bytes": len(body)}
        line = json.dumps(head).encode() + b"\n"
        with self._lock:
            try:
                self._stream.write(line)
                if body:
                    self._stream.write(body)
                self._stream.flush()
            except (OSError, ValueError) as error:  # ValueError: closed on this side
                raise Cut(str(error)) from error


def read(stream: IO[bytes]) -> Optional[tuple[dict[str, Any], bytes]]:
    """The next frame; None when the other side ended properly or in the middle of one."""
    try:
        line = stream.readline()
        if not line.endswith(b"\n"):
            return None
        head = json.loads(line)
        size = int(head.get("bytes", 0))
        body = stream.read(size) if size else b""
    except (OSError, ValueError) as error:
        raise Cut(f"what came was no frame: {error}") from error
    return (head, body) if len(body) == size else None
