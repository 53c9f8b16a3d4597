"""Reads and searches logs of any size and content while they grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_CHUNK_BYTES = 1 << 16
_SEARCH_BYTES = 1 << 22
_MAX_LINE_BYTES = 1 << 26  # a file without newlines must not be loaded into memory completely
_MAX_TEXT_BYTES = 2000


class LogMatch(NamedTuple):
    offset: int  # of the line, in bytes
    line: int  # line number, starting at 1
    text: str


def read_log(path: Path, offset: int = 0, limit: int = 1 << 20) -> tuple[bytes, int]:
    """At most ``limit`` bytes from ``offset`` on, and the next offset.

    A log that does not exist yet is empty. A negative offset counts from the end.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            begin = max(size + offset, 0) if offset < 0 else offset
            file.seek(begin)
            data = file.read(limit) if begin < size else b""
    except FileNotFoundError:
        return b"", max(offset, 0)
    return data, begin + len(data)


def search_log(path: Path, text: str, limit: int = 100) -> list[LogMatch]:
    """The lines that contain ``text``, ignoring case. The log is read in chunks."""
    matches: list[LogMatch] = []
    pattern = text.encode().lower()
    if not pattern:
        return matches
    line, offset, rest = 1, 0, b""
    with open(path, "rb") as file:
        while len(matches) < limit:
            chunk = file.read(_SEARCH_BYTES)
            data = rest + chunk
            cut = data.rfind(b"\n") + 1 if chunk else len(data)
            if not cut and len(data) < _MAX_LINE_BYTES and chunk:
                rest = data
                continue
            block, rest = data[: cut or len(data)], data[cut or len(data) :]
            lowered, position = block.lower(), 0
            while len(matches) < limit and (position := lowered.find(pattern, position)) >= 0:
                begin = block.rfind(b"\n", 0, position) + 1
                end = block.find(b"\n", position)
                end = len(block) if end < 0 else end
                line_text = block[begin : min(end, begin + _MAX_TEXT_BYTES)].decode("utf-8", "replace")
                matches.append(LogMatch(offset + begin, line + block.count(b"\n", 0, begin), line_text))
                position = end
            line += block.count(b"\n")
            offset += len(block)
            if not chunk:
                break
    return matches


def log_sizes(folder: Path) -> dict[str, int]:
    """The sizes of all logs in a folder, by name."""
    try:
        return {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}
    except FileNotFoundError:
        return {}


def tail_offset(path: Path, lines: int) -> int:
    """The offset of the last ``lines`` lines. Only the end of the file is read."""
    try:
        with open(path, "rb") as file:
            end = position = file.seek(0, 2)
            missing = lines
            while position > 0 and missing >= 0:
                begin = max(position - _CHUNK_BYTES, 0)
                file.seek(begin)
                chunk = file.read(position - begin)
                newline = len(chunk)
                while (newline := chunk.rfind(b"\n", 0, newline)) >= 0:
                    if begin + newline == end - 1:
                        continue  # no line begins after the final newline
                    missing -= 1
                    if missing <= 0:
                        return begin + newline + 1
                position = begin
    except FileNotFoundError:
        pass
    return 0


def tail(path: Path, lines: int) -> bytes:
    """The last ``lines`` lines."""
    return read_log(path, tail_offset(path, lines), -1)[0]
