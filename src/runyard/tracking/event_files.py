"""Event files that a run writes for TensorBoard, read into its charts as they grow: every event once.

A series has the name of the file's folder and the tag, ``logs/train/loss``: what a script logs itself never mixes
with it. Where each file was read to is saved in the transaction that stores its points, beside the journals' places.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from runyard.context import format as layout
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns
from runyard.tracking.event_records import TAIL_BYTES, whole_records
from runyard.tracking.series import SCALAR, Entry, append
from runyard.tracking.summaries import Said, read_event
from runyard.wire.event_records import is_event_file

_ROUND_BYTES = 8 << 20  # bounds the memory and the length of one transaction
_LONGEST_NAME = 255
_LOOK_SHARE = 50  # folders are walked again after this many times what the last walk took


@dataclass(frozen=True)
class EventFile:
    name: str  # in the run: logs/train/events.out.tfevents.…
    path: Path


class EventFiles:
    """The event files of live runs. It remembers where they are: folders with many files are not walked each time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def read_on(self, run_id: str, folders: Callable[[], Iterable[tuple[str, Path]]]) -> int:
        """Stores what came since the last time; returns how many values that was."""
        with self._lock:
            known = self._known.setdefault(run_id, _Known())
        begin = time.monotonic()
        if begin >= known.look_again_at:
            known.files = list(find_event_files(folders()))
            known.look_again_at = begin + _LOOK_SHARE * (time.monotonic() - begin)
        grown = [(file, size) for file in known.files if (size := _size(file.path)) > known.sizes.get(file.name, 0)]
        if not grown:
            return 0
        stored, _ = ingest_event_files(self._database, run_id, [file for file, _ in grown])
        known.sizes.update((file.name, size) for file, size in grown)
        return stored

    def forget(self, run_id: str) -> None:
        with self._lock:
            self._known.pop(run_id, None)


@dataclass
class _Known:
    files: list[EventFile] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    look_again_at: float = 0.0


def find_event_files(folders: Iterable[tuple[str, Path]]) -> Iterator[EventFile]:
    """Those below folders of a run, given with their names in it. Links are not followed: they may lead out of it."""
    for prefix, folder in folders:
        if folder.is_symlink():
            continue
        for place, _, names in os.walk(folder):
            for name in filter(is_event_file, names):
                path = Path(place) / name
                if path.is_file() and not path.is_symlink():
                    yield EventFile(f"{prefix}/{path.relative_to(folder).as_posix()}", path)


def ingest_event_files(database: Database, run_id: str, files: Iterable[EventFile]) -> tuple[int, list[str]]:
    """How many values were stored, and a warning for each file that is damaged. May be called by several at once."""
    stored, warnings = 0, []
    for file in sorted(files, key=lambda file: file.name):
        while True:
            try:
                count, more, warning = _read_round(database, run_id, file)
            except _ReadByAnother:
                continue
            stored += count
            if warning:
                warnings.append(warning)
            if not more:
                break
    return stored, warnings


class _ReadByAnother(Exception):
    """Somebody else stored these events first."""


def _read_round(database: Database, run_id: str, file: EventFile) -> tuple[int, bool, str]:
    before = _place(database, run_id, file.name)
    begin = before or 0
    said, end, warning = _read(file, begin)
    if end == begin:
        return 0, False, warning
    scalars, entries = _arranged(file.name, said)
    with database.write() as connection:
        _save_place(connection, run_id, file.name, before, end)
        if scalars or entries:
            append(connection, run_id, scalars, entries)
    return len(said), end - begin >= _ROUND_BYTES // 2, warning


def _read(file: EventFile, begin: int) -> tuple[list[Said], int, str]:
    """The values from ``begin`` on, where the last whole event ends, and what is wrong there."""
    said: list[Said] = []
    size = _ROUND_BYTES
    while True:
        try:
            with open(file.path, "rb") as opened:
                opened.seek(begin)
                data = opened.read(size)
        except OSError:  # the script removed it
            return said, begin, ""
        spans, damaged = whole_records(data)
        for start, end in spans:
            # a message of a kind that nobody knows: the record is whole, the next ones may be read
            with suppress(ValueError, ArithmeticError, struct.error):
                said += read_event(data[start:end])
        at = spans[-1][1] + TAIL_BYTES if spans else 0
        if damaged is not None:
            told = f"{file.name} is damaged at byte {begin + damaged:,}: what follows was not read"
            return said, begin + at, told
        if at or len(data) < size:
            return said, begin + at, ""
        size *= 4  # one event is larger than a round


def _arranged(name: str, said: list[Said]) -> tuple[dict[str, Columns], dict[tuple[str, str], list[Entry]]]:
    folder = name.rpartition("/")[0]
    points: dict[str, list[Said]] = {}
    entries: dict[tuple[str, str], list[Entry]] = {}
    for value in said:
        series = f"{folder}/{value.tag}"[:_LONGEST_NAME]
        if value.kind == SCALAR:
            points.setdefault(series, []).append(value)
        else:
            entry = Entry(value.step, value.time, 0, value.value)
            entries.setdefault((series, value.kind), []).append(entry)
    return {series: _columns(values) for series, values in points.items()}, entries


def _columns(said: list[Said]) -> Columns:
    count = len(said)
    return Columns(
        np.array([value.step for value in said], np.int64),
        np.array([value.time for value in said], np.float64),
        np.array([value.value for value in said], np.float64).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, layout.FLOAT, np.uint8),
    )


def _place(database: Database, run_id: str, name: str) -> int | None:
    table = schema.journals.c
    with database.read() as connection:
        found: int | None = connection.execute(
            select(table.slot).where(table.run_id == run_id, table.name == name)
        ).scalar_one_or_none()
    return found


def _save_place(connection: Connection, run_id: str, name: str, before: int | None, end: int) -> None:
    """First in the transaction: it takes the writer's lock, and fails when somebody else has read on meanwhile."""
    table = schema.journals
    if before is None:
        try:
            connection.execute(insert(table).values(run_id=run_id, name=name, segment=0, slot=end, dropped=0))
        except IntegrityError as error:
            raise _ReadByAnother from error
        return
    moved = connection.execute(
        update(table).where(table.c.run_id == run_id, table.c.name == name, table.c.slot == before).values(slot=end)
    )
    if moved.rowcount != 1:
        raise _ReadByAnother


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
