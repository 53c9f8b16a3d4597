"""Reads logs of any size and content while they grow."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runyard.posix.regular_file import UNREADABLE, open_regular, read_range

_CHUNK_BYTES = 1 << 16
_MAX_TAIL_BYTES = 1 << 26  # lines may have any length


def read_log(path: Path, offset: int = 0, limit: int = 1 << 20) -> tuple[bytes, int]:
    """At most ``limit`` bytes from ``offset`` on, and the next offset. A negative offset counts from the end.

    A log that does not exist yet is empty, and so is one that its script has replaced by a link or a pipe.
    """
    try:
        file = open_regular(path)
    except UNREADABLE:
        return b"", max(offset, 0)
    try:
        begin = max(os.fstat(file).st_size + offset, 0) if offset < 0 else offset
        data = read_range(file, begin, limit)
    finally:
        os.close(file)
    return data, begin + len(data)


def log_sizes(folder: Path) -> dict[str, int]:
    """The sizes of all logs in a folder, by name. A link is not a log: it may lead to any file of the machine."""
    sizes: dict[str, int] = {}
    if folder.is_symlink():
        return sizes
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError, UnicodeEncodeError):  # removed since, or a name that is not text
                entry.name.encode()
                if entry.is_file(follow_symlinks=False):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
    return sizes


def tail_offset(path: Path, lines: int) -> int:
    """The offset of the last ``lines`` lines. Only the end of the file is read."""
    try:
        file = open_regular(path)
    except UNREADABLE:
        return 0
    try:
        end = position = os.fstat(file).st_size
        missing = lines
        while position > 0 and missing >= 0:
            begin = max(position - _CHUNK_BYTES, 0)
            chunk = read_range(file, begin, position - begin)
            newline = len(chunk)
            while (newline := chunk.rfind(b"\n", 0, newline)) >= 0:
                if begin + newline == end - 1:
                    continue  # no line begins after the final newline
                missing -= 1
                if missing <= 0:
                    return begin + newline + 1
            position = begin
    finally:
        os.close(file)
    return 0


def tail(path: Path, lines: int) -> bytes:
    """The last ``lines`` lines."""
    return read_log(path, tail_offset(path, lines), _MAX_TAIL_BYTES)[0]
