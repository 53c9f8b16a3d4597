"""A body that comes in chunks, taken apart as it arrives: each byte is looked at once, however it is cut up."""

from __future__ import annotations

import re
from typing import Optional

from runyard.scoring.request_head import LONGEST, Refused

_HEX = re.compile(rb"[0-9A-Fa-f]{1,12}")


class Chunks:
    def __init__(self, largest: int, too_large: str) -> None:
        self.body = bytearray()
        self._largest, self._too_large = largest, too_large
        self._line = b""  # of a size that has not arrived whole
        self._left = 0  # of this chunk, with the line end behind it
        self._ends = False  # the last chunk was there; lines that follow it are read over

    def feed(self, data: bytes) -> Optional[bytes]:
        """What comes after the body, once it is whole; None until then. Raises Refused."""
        while data:
            if self._left:
                data = self._take(data)
                continue
            self._line, data = self._line + data, b""
            end = self._line.find(b"\r\n")
            if end < 0:
                if len(self._line) > (LONGEST if self._ends else 1024):
                    raise Refused(400, "a chunk does not begin with its size")
                return None
            line, data, self._line = self._line[:end], self._line[end + 2 :], b""
            if self._ends:
                if not line:
                    return data
            else:
                size = _size(line)
                if len(self.body) + size > self._largest:
                    raise Refused(413, self._too_large)
                self._ends = size == 0
                self._left = size + 2 if size else 0
        return None

    def _take(self, data: bytes) -> bytes:
        piece, rest = data[: self._left], data[self._left :]
        before = self._left
        self._left -= len(piece)
        content = piece[: max(before - 2, 0)]
        self.body += content
        ending = piece[len(content) :]
        if ending and not b"\r\n"[max(2 - before, 0) :].startswith(ending):
            raise Refused(400, "a chunk is not as long as it says")
        return rest


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(b" \t")
    if not _HEX.fullmatch(digits):  # int() would take 0x5 too, and another program would not
        raise Refused(400, "a chunk does not begin with its size")
    return int(digits, 16)
