"""Incremental decoder for chunked request bodies. Every byte is processed once, however the data is split."""

from __future__ import annotations

import re
from typing import Optional

from runyard.scoring.request_head import MAX_HEAD_BYTES, HttpError

_HEX = re.compile(rb"[0-9A-Fa-f]{1,12}")


class ChunkedBody:
    def __init__(self, largest: int, too_large: str) -> None:
        self.body = bytearray()
        self._largest, self._too_large = largest, too_large
        self._log_line = b""  # an incomplete size line
        self._remaining = 0  # bytes of this chunk, including the line end after it
        self._in_trailer = False  # after the last chunk; trailer lines are ignored

    def feed(self, data: bytes) -> Optional[bytes]:
        """The data after the body once it is complete; None until then. Raises HttpError."""
        while data:
            if self._remaining:
                data = self._receive_body(data)
                continue
            self._log_line, data = self._log_line + data, b""
            end = self._log_line.find(b"\r\n")
            if end < 0:
                if len(self._log_line) > (MAX_HEAD_BYTES if self._in_trailer else 1024):
                    raise HttpError(400, "invalid chunk size")
                return None
            line, data, self._log_line = self._log_line[:end], self._log_line[end + 2 :], b""
            if self._in_trailer:
                if not line:
                    return data
            else:
                size = _size(line)
                if len(self.body) + size > self._largest:
                    raise HttpError(413, self._too_large)
                self._in_trailer = size == 0
                self._remaining = size + 2 if size else 0
        return None

    def _receive_body(self, data: bytes) -> bytes:
        piece, rest = data[: self._remaining], data[self._remaining :]
        before = self._remaining
        self._remaining -= len(piece)
        content = piece[: max(before - 2, 0)]
        self.body += content
        ending = piece[len(content) :]
        if ending and not b"\r\n"[max(2 - before, 0) :].startswith(ending):
            raise HttpError(400, "chunk length does not match its size")
        return rest


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(b" \t")
    if not _HEX.fullmatch(digits):  # int() would also accept 0x5, which a proxy may reject
        raise HttpError(400, "invalid chunk size")
    return int(digits, 16)
