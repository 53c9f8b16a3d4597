"""The message format between the yard and a host: one line of JSON, followed by as many bytes as it announces."""

from __future__ import annotations

import json
import threading
from typing import IO, Any, Optional

CHUNK_BYTES = 256 * 1024


class ConnectionLost(Exception):
    """The other side is gone; the text is the reason, if it is known."""


class FrameWriter:
    """Thread-safe: frames are not interleaved."""

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
                raise ConnectionLost(str(error)) from error


def read_frame(stream: IO[bytes]) -> Optional[tuple[dict[str, Any], bytes]]:
    """The next frame; None if the stream ended, also in the middle of a frame."""
    try:
        line = stream.readline()
        if not line.endswith(b"\n"):
            return None
        head = json.loads(line)
        size = int(head.get("bytes", 0))
        body = stream.read(size) if size else b""
    except (OSError, ValueError) as error:
        raise ConnectionLost(f"invalid frame: {error}") from error
    return (head, body) if len(body) == size else None
