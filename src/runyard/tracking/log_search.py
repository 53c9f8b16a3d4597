"""Full-text search in logs of any size and content, about as fast as `grep`.

The log is read in chunks that fit into the processor's cache. Letters are folded to one case by setting a bit of every
byte, which numpy does many times faster than ``bytes.lower``; that also makes some other characters equal, so every
candidate is compared again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runyard.posix.regular_file import UNREADABLE, open_regular

_SEARCH_BYTES = 1 << 19
_MAX_TEXT_BYTES = 2000
_CASE_BIT = 0x20  # the difference between an ASCII letter and its capital
_NEWLINE = 0x0A


class LogMatch(NamedTuple):
    offset: int  # of the line, in bytes
    line: int  # line number, starting at 1
    text: str


def search_log(path: Path, text: str, limit: int = 100) -> list[LogMatch]:
    """The first lines that contain ``text``, ignoring the case of ASCII letters."""
    return [match for matches in search_chunks(path, text, limit) for match in matches]


def search_chunks(path: Path, text: str, limit: int = 100) -> Iterator[list[LogMatch]]:
    """Like :func:`search_log`, with the matches of each chunk as soon as it was read; often an empty list."""
    pattern = text.encode("utf-8", "surrogatepass").lower()
    if not pattern or b"\n" in pattern:  # no line contains a newline
        return
    try:
        file = open_regular(path)
    except UNREADABLE:  # its script has removed it, or replaced it by a link or a pipe
        return
    try:
        search = _Search(file, pattern)
        while limit > 0 and search.read_chunk():
            matches = search.matches(limit)
            limit -= len(matches)
            yield matches
    finally:
        os.close(file)


class _Search:
    """The buffer begins with the end of the previous chunk, so that a match across two chunks is found."""

    def __init__(self, file: int, pattern: bytes) -> None:
        self._file, self._pattern = file, pattern
        self._max_overlap = len(pattern) - 1
        self._buffer = bytearray(self._max_overlap + _SEARCH_BYTES)
        self._bytes = np.frombuffer(self._buffer, np.uint8)
        self._folds_case = pattern.upper() != pattern
        # without letters, folding would only make newlines equal to the asterisk
        self._folded = bytearray(len(self._buffer)) if self._folds_case else self._buffer
        self._folded_bytes = np.frombuffer(self._folded, np.uint8)
        self._folded_pattern = bytes(byte | _CASE_BIT for byte in pattern) if self._folds_case else pattern
        self._end = 0  # of the valid part of the buffer
        self._offset = 0  # of the buffer in the file
        self._line = 1
        self._line_offset = 0  # of the line that contains the last counted byte
        self._counted = 0  # newlines up to this position of the buffer are counted
        self._skip_line = False  # the current line matched already

    def read_chunk(self) -> bool:
        """Read the next chunk behind the last bytes of the previous one; False at the end of the log."""
        overlap = min(self._max_overlap, self._end)
        self._buffer[:overlap] = self._buffer[self._end - overlap : self._end]
        self._offset += self._end - overlap
        self._counted -= self._end - overlap
        size = os.readv(self._file, [memoryview(self._buffer)[overlap : overlap + _SEARCH_BYTES]])
        self._end = overlap + size
        if size and self._folds_case:
            np.bitwise_or(self._bytes[: self._end], _CASE_BIT, out=self._folded_bytes[: self._end])
        return size > 0

    def matches(self, limit: int) -> list[LogMatch]:
        """The matching lines that were not returned before, at most ``limit``. Counts the lines of the chunk."""
        matches: list[LogMatch] = []
        position = self._after_line(0) if self._skip_line else 0
        while len(matches) < limit and position < self._end:
            position = self._folded.find(self._folded_pattern, position, self._end)
            if position < 0:
                break
            if self._buffer[position : position + len(self._pattern)].lower() != self._pattern:
                position += 1
                continue
            self._count_lines(position)
            line_offset, number = self._line_offset, self._line
            matches.append(LogMatch(line_offset, number, self._text(line_offset)))
            position = self._after_line(position)
        self._count_lines(self._end)
        return matches

    def _after_line(self, position: int) -> int:
        """The position after the next newline; the end of the buffer if the line continues in the next chunk."""
        newline = self._buffer.find(b"\n", max(position, self._counted), self._end)
        self._skip_line = newline < 0
        return self._end if newline < 0 else newline + 1

    def _count_lines(self, position: int) -> None:
        """Advance the line number to that of ``position``."""
        if position <= self._counted:
            return
        count = int(np.count_nonzero(self._bytes[self._counted : position] == _NEWLINE))
        if count:
            self._line += count
            self._line_offset = self._offset + self._buffer.rfind(b"\n", self._counted, position) + 1
        self._counted = position

    def _text(self, offset: int) -> str:
        """The beginning of a line, which may be in an earlier chunk."""
        data = os.pread(self._file, _MAX_TEXT_BYTES, offset)
        return data.partition(b"\n")[0].decode("utf-8", "replace")
