"""Reading logs by the byte: any size, any content, while they grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_CHUNK_BYTES = 1 << 16
_SEARCHED_BYTES = 1 << 22
_LONGEST_LINE = 1 << 26  # a file without lines must not come into memory whole
_SHOWN_BYTES = 2000


class Found(NamedTuple):
    offset: int  # where the line begins, in bytes
    line: int  # its number, from 1
    text: str


def read_log(path: Path, offset: int = 0, limit: int = 1 << 20) -> tuple[bytes, int]:
    """At most ``limit`` bytes from ``offset`` on, and the offset to read on from.

    A log that is not there yet is empty. A negative offset counts from the end.
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


def search_log(path: Path, text: str, limit: int = 100) -> list[Found]:
    """The lines that hold a text, capitals or not, in order; the log is read once, a piece at a time."""
    found: list[Found] = []
    wanted = text.encode().lower()
    if not wanted:
        return found
    line, at, rest = 1, 0, b""
    with open(path, "rb") as file:
        while len(found) < limit:
            piece = file.read(_SEARCHED_BYTES)
            whole = rest + piece
            cut = whole.rfind(b"\n") + 1 if piece else len(whole)
            if not cut and len(whole) < _LONGEST_LINE and piece:
                rest = whole
                continue
            block, rest = whole[: cut or len(whole)], whole[cut or len(whole) :]
            lowered, place = block.lower(), 0
            while len(found) < limit and (place := lowered.find(wanted, place)) >= 0:
                begin = block.rfind(b"\n", 0, place) + 1
                end = block.find(b"\n", place)
                end = len(block) if end < 0 else end
                shown = block[begin : min(end, begin + _SHOWN_BYTES)].decode("utf-8", "replace")
                found.append(Found(at + begin, line + block.count(b"\n", 0, begin), shown))
                place = end
            line += block.count(b"\n")
            at += len(block)
            if not piece:
                break
    return found


def log_sizes(folder: Path) -> dict[str, int]:
    """The logs that are there, by name, in bytes."""
    try:
        return {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}
    except FileNotFoundError:
        return {}


def tail_offset(path: Path, lines: int) -> int:
    """Where the last ``lines`` lines begin. Only the end of the file is read."""
    try:
        with open(path, "rb") as file:
            end = at = file.seek(0, 2)
            missing = lines
            while at > 0 and missing >= 0:
                begin = max(at - _CHUNK_BYTES, 0)
                file.seek(begin)
                chunk = file.read(at - begin)
                newline = len(chunk)
                while (newline := chunk.rfind(b"\n", 0, newline)) >= 0:
                    if begin + newline == end - 1:
                        continue  # the newline that ends the last line begins no line
                    missing -= 1
                    if missing <= 0:
                        return begin + newline + 1
                at = begin
    except FileNotFoundError:
        pass
    return 0


def tail(path: Path, lines: int) -> bytes:
    """The last ``lines`` lines."""
    with_end, _ = read_log(path, tail_offset(path, lines), -1)
    return with_end
