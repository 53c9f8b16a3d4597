"""Reads the journals that scripts write: committed records from a saved position on."""

from __future__ import annotations

import json
import mmap
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runyard.context import format as layout

RECORD = np.dtype(
    [("value", "<i8"), ("time", "<f8"), ("step", "<i8"), ("metric", "<u4"), ("kind", "<u2"), ("commit", "<u2")]
)
Records = npt.NDArray[np.void]

_EMPTY_SLOT_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Position:
    segment: int = 0
    slot: int = 0
    dropped: int = 0  # points that the process could not write, according to the segments read so far


@dataclass(frozen=True)
class Batch:
    records: Records
    position: Position  # where to continue, once the records are stored
    rank: int


class JournalReader:
    """Reads the journal of one process. Stateless: the caller saves the position together with the records."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder = folder
        self._stem = stem

    def read(self, position: Position, *, limit: int, final: bool = False) -> Batch:
        """Committed records from ``position`` on; may return more than ``limit``, by less than one segment.

        A slot that is claimed but empty stops the reader, because the process may be about to fill it. It is skipped
        if the process is dead, if it has marked the journal as interrupted, or if ``final``.
        """
        parts: list[Records] = []
        rank = count = 0
        while count < limit:
            segment = _Segment.open(self._folder / layout.segment_name(self._stem, position.segment))
            has_next = (self._folder / layout.segment_name(self._stem, position.segment + 1)).exists()
            if segment is None:
                if not has_next:
                    break
                # the writer was interrupted while creating this segment, and continued with the next
                position = replace(position, segment=position.segment + 1, slot=0)
                continue
            rank, is_new = segment.header.rank, position.slot == 0
            records, slot, finished = segment.read(position.slot, final, has_next)
            if is_new and (slot or (finished and has_next)):  # count once, not while the segment is unread
                position = replace(position, dropped=position.dropped + segment.header.dropped)
            if len(records):
                parts.append(records)
                count += len(records)
            position = replace(position, slot=slot)
            if not (finished and has_next):
                break
            position = replace(position, segment=position.segment + 1, slot=0)
        return Batch(np.concatenate(parts) if parts else np.empty(0, RECORD), position, rank)

    def names(self) -> dict[int, str]:
        """Metric names by number. Call it after reading records: a name is written before its first record."""
        path = self._folder / f"{self._stem}{layout.NAMES_SUFFIX}"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return dict(json.loads(line) for line in lines)

    def side_lines(self, offsets: list[int]) -> list[Any]:
        """The values of the side lines at ``offsets``; None for lines damaged by a power failure."""
        path = self._folder / f"{self._stem}{layout.SIDE_SUFFIX}"
        if not path.exists():
            return [None] * len(offsets)
        with open(path, "rb") as file:
            begin = min(offsets)
            file.seek(begin)
            data = file.read()
        return [_line(data, offset - begin) for offset in offsets]


def stems(folder: Path) -> list[str]:
    """The file stems of all journals in a folder, one per process, sorted."""
    return sorted({path.name.partition(".")[0] for path in folder.glob(f"*{layout.SEGMENT_SUFFIX}")})


def _line(data: bytes, begin: int) -> Any:
    try:
        return json.loads(data[begin : data.index(b"\n", begin)])
    except ValueError:
        return None


@dataclass(frozen=True)
class _Segment:
    header: layout.Header
    mapped: mmap.mmap

    @classmethod
    def open(cls, path: Path) -> _Segment | None:
        try:
            with open(path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError):
            return None
        header = layout.Header.unpack(mapped[: layout.HEADER_BYTES])
        return None if header is None else cls(header, mapped)

    def read(self, slot: int, final: bool, has_next: bool) -> tuple[Records, int, bool]:
        """The records, the next slot, and whether the segment is finished."""
        # checked before reading: a dead process has written all its records
        has_ended = final or layout.writer_is_dead(self.header)
        slots = np.frombuffer(self.mapped, RECORD, offset=layout.HEADER_BYTES)
        # the commit markers are copied first: the fields of a slot are written before its marker
        committed = slots["commit"][slot:] == layout.COMMITTED
        if committed.all():
            return slots[slot:].copy(), len(slots), True
        prefix = int(np.argmin(committed))
        later = np.flatnonzero(committed[prefix:])
        if not len(later):
            # the rest of the segment stays empty if the process has ended or was interrupted in its last slots
            is_finished = has_ended or (has_next and self._is_interrupted())
            return slots[slot : slot + prefix].copy(), slot + prefix, is_finished
        end = prefix + int(later[-1]) + 1
        if has_ended or self._is_timed_out(slots[slot + end - 1]["time"]):
            return slots[slot : slot + end][committed[:end]], slot + end, has_ended or slot + end == len(slots)
        return slots[slot : slot + prefix].copy(), slot + prefix, False

    def _is_timed_out(self, last_time: float) -> bool:
        return self._is_interrupted() and time.time() - last_time > _EMPTY_SLOT_TIMEOUT_S

    def _is_interrupted(self) -> bool:
        return self.mapped[layout.INTERRUPTED_AT] == 1
