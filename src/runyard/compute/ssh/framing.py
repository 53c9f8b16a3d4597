"""The message format between the yard and a host: one line of JSON, followed by as many bytes as it announces."""

from __future__ import annotations

import json
import threading
from typing import IO, Any, Optional

from runyard.spec.strict_json import parse_json

CHUNK_BYTES = 256 * 1024
_MAX_HEAD_BYTES = 1 << 28  # the head of a working copy lists all of its files
_MAX_BODY_BYTES = 1 << 30
_MAX_DEPTH = 64


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
        line = stream.readline(_MAX_HEAD_BYTES)
        if not line.endswith(b"\n"):
            return None
        head = parse_json(line, max_bytes=_MAX_HEAD_BYTES, max_depth=_MAX_DEPTH)
        size = head.get("bytes", 0) if isinstance(head, dict) else -1
        if not isinstance(size, int) or not 0 <= size <= _MAX_BODY_BYTES:
            raise ValueError(f"not an object with a valid number of bytes: {line[:100]!r}")
        body = stream.read(size) if size else b""
    except (OSError, ValueError) as error:
        raise ConnectionLost(f"invalid frame: {error}") from error
    return (head, body) if len(body) == size else None
