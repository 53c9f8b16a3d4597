"""Ingests the TensorBoard event files of a run as they grow: every event exactly once.

The name of a series is the file's folder and the tag, such as ``logs/train/loss``, so it never clashes with the metrics
that a script logs. Hyperparameters of the HParams plugin become parameters of the run. The read position of each file
is saved in the transaction that stores its values, in the table of journal positions.
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
from runyard.context.documents import SCALAR
from runyard.event_files.checksums import TAIL_BYTES, complete_records, first_record_bytes
from runyard.event_files.hparams import SESSION_END, SESSION_START, without_time
from runyard.event_files.summaries import SummaryValue, read_event
from runyard.posix.regular_file import UNREADABLE, open_regular, read_range
from runyard.spec.redaction import mask_label
from runyard.store import schema
from runyard.store.database import Database
from runyard.store.run_labels import record_change, set_params
from runyard.tracking.blocks import Columns
from runyard.tracking.file_walk import decode_name
from runyard.tracking.series import Entry, append
from runyard.wire.event_records import is_event_file

_ROUND_BYTES = 8 << 20  # bounds the memory and the length of one transaction
_MAX_NAME = 255
_MAX_TIME_S = 1e11  # the year 5138
_MAX_STEP = 1 << 63
_MAX_EVENT_BYTES = 1 << 26  # larger ones are graphs and images, which are not read
_ROUND_S = 1.0  # a run with many files must not delay the others
_RESCAN_FACTOR = 50  # folders are scanned again after this multiple of the last scan's duration


@dataclass(frozen=True)
class EventFile:
    name: str  # in the run: logs/train/events.out.tfevents.…
    path: Path
    base: str = ""  # folder that is not part of the names of series, such as "logs/"

    @property
    def series_folder(self) -> str:
        return without_time(self.name.removeprefix(self.base).rpartition("/")[0])


class EventFiles:
    """Ingests the event files of running runs; caches their paths, because scanning large folders is slow."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._runs: dict[str, _RunState] = {}
        self._lock = threading.Lock()

    def ingest_new(self, run_id: str, folders: Callable[[], Iterable[tuple[str, Path]]]) -> int:
        """Store the values that were added since the last call; return their number."""
        with self._lock:
            state = self._runs.setdefault(run_id, _RunState())
        started_at = time.monotonic()
        if started_at >= state.next_scan_at:
            state.files = list(find_event_files(folders()))
            state.next_scan_at = started_at + _RESCAN_FACTOR * (time.monotonic() - started_at)
        grown = [(file, size) for file in state.files if (size := _size(file.path)) > state.sizes.get(file.name, 0)]
        if not grown:
            return 0
        stored = 0
        for file, size in grown:
            stored += ingest_event_files(self._database, run_id, [file])[0]
            state.sizes[file.name] = size
            if time.monotonic() - started_at > _ROUND_S:  # the others wait until the next call
                break
        return stored

    def forget(self, run_id: str) -> None:
        with self._lock:
            self._runs.pop(run_id, None)


@dataclass
class _RunState:
    files: list[EventFile] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    next_scan_at: float = 0.0


def find_event_files(folders: Iterable[tuple[str, Path]]) -> Iterator[EventFile]:
    """Find event files in folders of a run, given as (name, path). Links are not followed: they may lead outside."""
    for prefix, folder in folders:
        if folder.is_symlink():
            continue
        for parent, _, names in os.walk(folder):
            for name in filter(is_event_file, names):
                path = Path(parent) / name
                if path.is_file() and not path.is_symlink():
                    yield EventFile(f"{prefix}/{decode_name(path.relative_to(folder).as_posix())}", path)


def ingest_event_files(database: Database, run_id: str, files: Iterable[EventFile]) -> tuple[int, list[str]]:
    """Return the number of stored values, and a warning for each damaged file. Thread- and process-safe."""
    stored, warnings = 0, []
    for file in sorted(files, key=lambda file: file.name):
        while True:
            try:
                count, more, warning = _read_round(database, run_id, file)
            except _ConcurrentUpdate:
                continue
            stored += count
            if warning:
                warnings.append(warning)
            if not more:
                break
    return stored, warnings


class _ConcurrentUpdate(Exception):
    """Another thread or process stored these events first."""


def _read_round(database: Database, run_id: str, file: EventFile) -> tuple[int, bool, str]:
    before = _load_position(database, run_id, file.name)
    begin = before or 0
    values, end, warning = _read(file, begin)
    if end == begin:
        return 0, False, warning
    scalars, entries = _group_by_series(file.series_folder, values)
    sessions = [value.value for value in values if value.kind == SESSION_START]
    with database.write() as connection:
        _save_position(connection, run_id, file.name, before, end)
        if scalars or entries:
            append(connection, run_id, scalars, entries)
        for parameters in sessions:
            _add_parameters(connection, run_id, file.series_folder, parameters)
    return len(values), end - begin >= _ROUND_BYTES // 2, warning


def _read(file: EventFile, begin: int) -> tuple[list[SummaryValue], int, str]:
    """The values from ``begin`` on, the end of the last complete event, and a warning if the file is damaged."""
    values: list[SummaryValue] = []
    size = _ROUND_BYTES
    while True:
        try:
            stream = open_regular(file.path)
        except UNREADABLE:  # deleted or replaced by the script
            return values, begin, ""
        try:
            file_size = os.fstat(stream).st_size
            data = read_range(stream, begin, size)
        finally:
            os.close(stream)
        spans, damaged = complete_records(data)
        for start, end in spans:
            # skip records of unknown formats: they are complete, so the next ones can be read
            with suppress(ValueError, ArithmeticError, struct.error):
                values += [value for value in read_event(data[start:end]) if _is_storable(value)]
        length = spans[-1][1] + TAIL_BYTES if spans else 0
        if damaged is not None:
            warning = f"{file.name} is damaged at byte {begin + damaged:,}: the rest was not read"
            return values, begin + length, warning
        if length or len(data) < size:
            return values, begin + length, ""
        event_end = begin + first_record_bytes(data)
        if event_end - begin > _MAX_EVENT_BYTES:
            return values, event_end if event_end <= file_size else begin, ""
        size *= 4  # one event is larger than the buffer


def _is_storable(value: SummaryValue) -> bool:
    """False for a time or step that no clock and no program has."""
    return abs(value.time) < _MAX_TIME_S and -_MAX_STEP <= value.step < _MAX_STEP


def _add_parameters(connection: Connection, run_id: str, folder: str, parameters: dict[str, str]) -> None:
    """Set parameters. If the run has another value under a name, the folder of the file becomes part of the name."""
    table = schema.params.c
    stored_params = dict(
        connection.execute(select(table.key, table.value).where(table.run_id == run_id)).tuples().all()
    )
    names = {
        key: key if stored_params.get(key) in (None, mask_label(key, value)) else _join(folder, key)
        for key, value in parameters.items()
    }
    set_params(connection, run_id, {names[key]: value for key, value in parameters.items()})
    record_change(connection, run_id)


def _group_by_series(
    folder: str, values: list[SummaryValue]
) -> tuple[dict[str, Columns], dict[tuple[str, str], list[Entry]]]:
    points: dict[str, list[SummaryValue]] = {}
    entries: dict[tuple[str, str], list[Entry]] = {}
    for value in values:
        series = _join(folder, value.tag)
        if value.kind == SCALAR:
            points.setdefault(series, []).append(value)
        elif value.kind not in (SESSION_START, SESSION_END):
            entry = Entry(value.step, value.time, 0, value.value)
            entries.setdefault((series, value.kind), []).append(entry)
    return {series: _columns(scalars) for series, scalars in points.items()}, entries


def _join(folder: str, name: str) -> str:
    return (f"{folder}/{name}" if folder else name)[:_MAX_NAME]


def _columns(values: list[SummaryValue]) -> Columns:
    count = len(values)
    return Columns(
        np.array([value.step for value in values], np.int64),
        np.array([value.time for value in values], np.float64),
        np.array([value.value for value in values], np.float64).view(np.int64),
        np.zeros(count, np.int32),
        np.full(count, layout.FLOAT, np.uint8),
    )


def _load_position(database: Database, run_id: str, name: str) -> int | None:
    table = schema.journals.c
    with database.read() as connection:
        position: int | None = connection.execute(
            select(table.slot).where(table.run_id == run_id, table.name == name)
        ).scalar_one_or_none()
    return position


def _save_position(connection: Connection, run_id: str, name: str, before: int | None, end: int) -> None:
    """Must be first in the transaction: it takes the write lock and detects a concurrent update."""
    table = schema.journals
    if before is None:
        try:
            connection.execute(insert(table).values(run_id=run_id, name=name, segment=0, slot=end, dropped=0))
        except IntegrityError as error:
            raise _ConcurrentUpdate from error
        return
    result = connection.execute(
        update(table).where(table.c.run_id == run_id, table.c.name == name, table.c.slot == before).values(slot=end)
    )
    if result.rowcount != 1:
        raise _ConcurrentUpdate


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
