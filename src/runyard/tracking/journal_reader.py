"""Reading the journals that scripts write: from a saved position on, only what is surely there."""

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

_HOLE_PATIENCE_S = 1.0


@dataclass(frozen=True)
class Position:
    segment: int = 0
    slot: int = 0
    dropped: int = 0  # points that the process could not write, as told by the segments read so far


@dataclass(frozen=True)
class Batch:
    records: Records
    position: Position  # where to read on, once the records are stored
    rank: int


class JournalReader:
    """One process's journal. It keeps no state: the caller saves the position together with what it stored."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder = folder
        self._stem = stem

    def read(self, position: Position, *, limit: int, final: bool = False) -> Batch:
        """Committed records from ``position`` on, some more than ``limit`` at most.

        A slot that was claimed and is still empty holds the reader up, since the process may be about to fill it;
        it is passed over when the process is dead, when it said that it was interrupted, or when ``final``.
        """
        parts: list[Records] = []
        rank = taken = 0
        while taken < limit:
            segment = _Segment.open(self._folder / layout.segment_name(self._stem, position.segment))
            followed = (self._folder / layout.segment_name(self._stem, position.segment + 1)).exists()
            if segment is None:
                if not followed:
                    break
                # the writer was interrupted while it made this one, and went on with the next
                position = replace(position, segment=position.segment + 1, slot=0)
                continue
            rank, is_new = segment.header.rank, position.slot == 0
            records, slot, finished = segment.read(position.slot, final, followed)
            if is_new and (slot or (finished and followed)):  # once: not again while nothing of it is read
                position = replace(position, dropped=position.dropped + segment.header.dropped)
            if len(records):
                parts.append(records)
                taken += len(records)
            position = replace(position, slot=slot)
            if not (finished and followed):
                break
            position = replace(position, segment=position.segment + 1, slot=0)
        return Batch(np.concatenate(parts) if parts else np.empty(0, RECORD), position, rank)

    def names(self) -> dict[int, str]:
        """The metrics' names by number. Read it after the records: a name is written before its first record."""
        path = self._folder / f"{self._stem}{layout.NAMES_SUFFIX}"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return dict(json.loads(line) for line in lines)

    def side(self, offsets: list[int]) -> list[Any]:
        """The side lines that begin at ``offsets``; None for one that a power cut has damaged."""
        path = self._folder / f"{self._stem}{layout.SIDE_SUFFIX}"
        if not path.exists():
            return [None] * len(offsets)
        with open(path, "rb") as file:
            begin = min(offsets)
            file.seek(begin)
            data = file.read()
        return [_line(data, offset - begin) for offset in offsets]


def stems(folder: Path) -> list[str]:
    """One for each process that logged, in a stable order."""
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

    def read(self, slot: int, final: bool, followed: bool) -> tuple[Records, int, bool]:
        """The records, the slot to read on from, and whether the segment is read to its end."""
        # asked first: a process that is dead now has written all that it ever will
        done = final or layout.writer_is_dead(self.header)
        slots = np.frombuffer(self.mapped, RECORD, offset=layout.HEADER_BYTES)
        # the markers are copied before the rest: what stands beside a marker seen here was written before it
        committed = slots["commit"][slot:] == layout.COMMITTED
        if committed.all():
            return slots[slot:].copy(), len(slots), True
        prefix = int(np.argmin(committed))
        later = np.flatnonzero(committed[prefix:])
        if not len(later):
            # of a process that is gone, or was interrupted on its last slots, the rest of a segment stays empty
            left = done or (followed and self._interrupted())
            return slots[slot : slot + prefix].copy(), slot + prefix, left
        end = prefix + int(later[-1]) + 1
        if done or self._abandoned(slots[slot + end - 1]["time"]):
            return slots[slot : slot + end][committed[:end]], slot + end, done or slot + end == len(slots)
        return slots[slot : slot + prefix].copy(), slot + prefix, False

    def _abandoned(self, last_time: float) -> bool:
        return self._interrupted() and time.time() - last_time > _HOLE_PATIENCE_S

    def _interrupted(self) -> bool:
        return self.mapped[layout.INTERRUPTED_AT] == 1
