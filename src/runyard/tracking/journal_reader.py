"""Reads the journals that scripts write: committed records from a saved position on.

A journal is untrusted: its script can truncate it, fill it with anything, or replace it. Files are read, not mapped,
because a read of mapped pages that a script has truncated away kills the process.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runyard.context import format as layout
from runyard.posix.regular_file import UNREADABLE, open_regular, read_range, read_regular

RECORD = np.dtype(
    [("value", "<i8"), ("time", "<f8"), ("step", "<i8"), ("metric", "<u4"), ("kind", "<u2"), ("commit", "<u2")]
)
Records = npt.NDArray[np.void]

_EMPTY_SLOT_TIMEOUT_S = 1.0
_MAX_SEGMENT_BYTES = layout.SEGMENT_BYTES[-1]
_MAX_NAMES_BYTES = 1 << 28
_MAX_NAME = 255
_MAX_LINE_BYTES = 1 << 26
_MAX_TIME_S = 1e11  # the year 5138
_SIDE_BYTES = 1 << 26  # side lines read at a time: the values of one batch must fit in memory
_WINDOW_BYTES = 1 << 20
_STEM = re.compile(r"[0-9A-Za-z_-]{1,100}")


@dataclass(frozen=True)
class Position:
    segment: int = 0
    slot: int = 0
    dropped: int = 0  # points that the process could not write, according to the files read so far


@dataclass(frozen=True)
class Batch:
    records: Records
    position: Position  # where to continue, once the records are stored
    rank: int
    is_cut: bool = False  # there are more committed records


class JournalReader:
    """Reads the journal of one process. Stateless: the caller saves the position together with the records."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._key = str(folder / stem)

    def read(self, position: Position, *, limit: int, final: bool = False) -> Batch:
        """Committed records from ``position`` on; may return more than ``limit``, by less than one segment.

        A slot that is claimed but empty stops the reader, because the process may be about to fill it. It is skipped
        if the process is dead, if it has marked the journal as interrupted, or if ``final``.
        """
        parts: list[Records] = []
        rank = count = 0
        is_cut = False
        side_begin: int | None = None  # offset of the first side line
        while count < limit and not is_cut:
            # looked up first: a segment that has a successor is complete, or was given up by the writer
            has_next = (self._folder / layout.segment_name(self._stem, position.segment + 1)).exists()
            with _open_segment(self._folder / layout.segment_name(self._stem, position.segment)) as segment:
                if segment is None:
                    if not has_next:
                        break
                    position = replace(position, segment=position.segment + 1, slot=0)
                    continue
                rank, is_new = segment.header.rank, position.slot == 0
                part = segment.read(position.slot, final, has_next, partial(self._is_timed_out, position.segment))
                if is_new and (part.end or (part.is_finished and has_next)):  # count once, not while it is unread
                    position = replace(position, dropped=position.dropped + segment.header.dropped)
            offsets = _side_offsets(part.records)
            if len(offsets):
                side_begin = int(part.records["value"][offsets[0]]) if side_begin is None else side_begin
                beyond = offsets[part.records["value"][offsets] > side_begin + _SIDE_BYTES]
                if len(beyond) and (count or beyond[0]):
                    part, is_cut = part.until(int(beyond[0])), True
            if len(part.records):
                parts.append(part.records)
                count += len(part.records)
            position = replace(position, slot=part.end)
            if not (part.is_finished and has_next):
                break
            position = replace(position, segment=position.segment + 1, slot=0)
        if final:
            _gaps.pop(self._key, None)
            position = replace(position, dropped=self._all_dropped())
        return Batch(np.concatenate(parts) if parts else np.empty(0, RECORD), position, rank, is_cut)

    def names(self) -> dict[int, str]:
        """Metric names by number. Call it after reading records: a name is written before its first record."""
        try:
            lines = read_regular(self._folder / f"{self._stem}{layout.NAMES_SUFFIX}", _MAX_NAMES_BYTES).split(b"\n")
        except UNREADABLE:
            return {}
        names: dict[int, str] = {}
        for line in lines[:-1]:
            try:
                number, name = json.loads(line)
                name.encode()
            except (ValueError, TypeError, AttributeError, RecursionError):
                continue
            if type(number) is int and isinstance(name, str) and 0 < len(name) <= _MAX_NAME:
                names[number] = name
        return names

    def side_lines(self, offsets: list[int]) -> list[Any]:
        """The values of the side lines at ``offsets``; None for lines that are damaged, or requested twice."""
        try:
            file = open_regular(self._folder / f"{self._stem}{layout.SIDE_SUFFIX}")
        except UNREADABLE:
            return [None] * len(offsets)
        values: dict[int, Any] = {}
        try:
            window = _Window(file)
            # in ascending order, each once: records that refer to one large line must not multiply its cost
            for offset in sorted(set(offsets)):
                values[offset] = _parse(window.line(offset))
        finally:
            os.close(file)
        return [values.pop(offset, None) for offset in offsets]

    def _is_timed_out(self, segment: int, slot: int, end: int) -> bool:
        """True if an empty slot was known for a while, together with all that were behind it at that time."""
        horizon, since = _gaps.get(self._key, ((-1, 0), 0.0))
        if (segment, slot) < horizon:
            return time.monotonic() - since > _EMPTY_SLOT_TIMEOUT_S
        last = segment
        while (self._folder / layout.segment_name(self._stem, last + 1)).exists():
            last += 1
        _gaps[self._key] = (last, end if last == segment else 0), time.monotonic()
        return False

    def _all_dropped(self) -> int:
        """The number of points that the process could not write, from all of its files."""
        total = file_size(self._folder / f"{self._stem}{layout.LOST_SUFFIX}")
        number = 0
        while True:
            path = self._folder / layout.segment_name(self._stem, number)
            with _open_segment(path) as segment:
                if segment is None and not path.is_symlink() and not path.exists():
                    return min(total, layout.MAX_LOST)
                total += segment.header.dropped if segment is not None else 0
            number += 1


def stems(folder: Path) -> list[str]:
    """The file stems of all journals in a folder, one per process, sorted."""
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it does not exist, or is not a folder of the run
        return []
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries]
    finally:
        os.close(directory)
    suffixes = (layout.SEGMENT_SUFFIX, layout.LOST_SUFFIX)
    return sorted(filter(_STEM.fullmatch, {name.partition(".")[0] for name in names if name.endswith(suffixes)}))


def file_size(path: Path) -> int:
    """The size of a regular file; 0 for anything else."""
    try:
        file = open_regular(path)
    except UNREADABLE:
        return 0
    try:
        return os.fstat(file).st_size
    finally:
        os.close(file)


@dataclass(frozen=True)
class _Part:
    """The committed records of a range of slots."""

    records: Records
    slots: npt.NDArray[np.intp] | None  # the slot of each record; None if they are consecutive
    begin: int
    end: int  # the slot at which to continue
    is_finished: bool

    def until(self, index: int) -> _Part:
        """The records before ``index``."""
        end = self.begin + index if self.slots is None else int(self.slots[index])
        return _Part(self.records[:index], None, self.begin, end, False)


@contextmanager
def _open_segment(path: Path) -> Iterator[_Segment | None]:
    try:
        file = open_regular(path)
    except UNREADABLE:
        yield None
        return
    try:
        head = os.pread(file, layout.HEADER_BYTES, 0)
        header = layout.Header.unpack(head)
        yield None if header is None else _Segment(header, file, head[layout.INTERRUPTED_AT] == 1)
    finally:
        os.close(file)


@dataclass(frozen=True)
class _Segment:
    header: layout.Header
    file: int
    is_interrupted: bool

    def read(self, slot: int, final: bool, has_next: bool, is_timed_out: Callable[[int, int], bool]) -> _Part:
        # checked before reading: a dead process has written all its records
        has_ended = final or layout.writer_is_dead(self.header)
        size = min(os.fstat(self.file).st_size, _MAX_SEGMENT_BYTES)
        count = max((size - layout.HEADER_BYTES) // layout.RECORD_BYTES - slot, 0)
        # the commit markers are read first: the fields of a slot are written before its marker
        committed = self._slots(slot, count)["commit"] == layout.COMMITTED
        count = len(committed)
        if committed.all():
            return self._part(slot, committed, True)
        prefix = int(np.argmin(committed))
        later = np.flatnonzero(committed[prefix:])
        if not len(later):
            # the rest of the segment stays empty if the process has ended or was interrupted in its last slots
            is_finished = has_ended or (has_next and self.is_interrupted)
            return self._part(slot, committed[:prefix], is_finished)
        end = prefix + int(later[-1]) + 1
        if has_ended or (self.is_interrupted and is_timed_out(slot + prefix, slot + end)):
            return self._part(slot, committed[:end], has_ended or end == count)
        return self._part(slot, committed[:prefix], False)

    def _part(self, slot: int, committed: npt.NDArray[np.bool_], is_finished: bool) -> _Part:
        records = self._slots(slot, len(committed))
        end = slot + len(committed)
        if committed.all() and len(records) == len(committed):
            return _Part(_without_garbage(records), None, slot, end, is_finished)
        committed = committed[: len(records)]  # it was truncated since
        return _Part(_without_garbage(records[committed]), slot + np.flatnonzero(committed), slot, end, is_finished)

    def _slots(self, slot: int, count: int) -> Records:
        data = bytearray(count * layout.RECORD_BYTES)
        length = os.preadv(self.file, [data], layout.HEADER_BYTES + slot * layout.RECORD_BYTES) if count else 0
        return np.frombuffer(data, RECORD, length // layout.RECORD_BYTES)


# Journals with empty slots: the position (segment, slot) up to which they were known, and since when. The times of
# records cannot be compared with the clock instead, because it may have been set since.
_gaps: dict[str, tuple[tuple[int, int], float]] = {}


def _without_garbage(records: Records) -> Records:
    """Records of unknown kinds become void, and impossible times become 0."""
    if not len(records):
        return records
    kinds = records["kind"]
    if kinds.max() > layout.HISTOGRAM or kinds.min() < layout.FLOAT:
        kinds[(kinds > layout.HISTOGRAM) | (kinds < layout.FLOAT)] = layout.VOID
    possible = np.abs(records["time"]) < _MAX_TIME_S
    if not possible.all():
        records["time"][~possible] = 0.0
    return records


def _side_offsets(records: Records) -> npt.NDArray[np.intp]:
    """The indices of the records that have a side line."""
    kinds = records["kind"]
    if not len(records) or kinds.max() <= layout.NONE:
        return np.empty(0, np.intp)
    return np.flatnonzero((kinds > layout.NONE) & (kinds != layout.VOID))


class _Window:
    """A part of a file, moved forward as lines are read."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._begin, self._data = 0, b""

    def line(self, offset: int) -> bytes:
        """The line that begins at ``offset``; empty if none begins there."""
        if offset < 0:
            return b""
        # with the byte before it, which must end another line
        begin = max(offset - 1, 0)
        if not self._begin <= begin < self._begin + len(self._data):
            self._load(begin, _WINDOW_BYTES)
        start = offset - self._begin
        if offset and self._data[start - 1 : start] != b"\n":
            return b""
        while (end := self._data.find(b"\n", start)) < 0:
            length = len(self._data) - start
            if length > _MAX_LINE_BYTES or not self._load(begin, max(4 * length, _WINDOW_BYTES)):
                return b""
            start = offset - begin
        return self._data[start:end]

    def _load(self, begin: int, size: int) -> bool:
        """False if this adds nothing."""
        end = self._begin + len(self._data)
        self._begin, self._data = begin, read_range(self._file, begin, size)
        return begin + len(self._data) > end


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
