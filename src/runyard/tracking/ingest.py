"""Ingests the journals of a run into the database: every point exactly once, also if a process is killed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from runyard.context import format as layout
from runyard.context.values import record_kind
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, join
from runyard.tracking.journal_reader import Batch, JournalReader, Position, Records, stems
from runyard.tracking.logged_values import LOGGED_KINDS, validate_line
from runyard.tracking.series import Entry, append, family

_ROUND_RECORDS = 1 << 19  # bounds the memory and the length of one transaction


def ingest(database: Database, run_id: str, journal_folder: Path, *, final: bool = False) -> int:
    """Store the records that the run's processes have logged since the last call; return their number.

    The new positions are saved in the transaction that stores the points. Thread- and process-safe.

    Args:
        database: The yard's database.
        run_id: The run.
        journal_folder: The folder with the journals of its processes.
        final: All processes of the run have ended, on all machines: incomplete records are skipped.
    """
    total = 0
    with _run_lock(database, run_id):
        while True:
            batches, is_complete = _read_round(database, run_id, journal_folder, final)
            if not batches:
                return total
            grouped = _group_by_metric(batches)
            try:
                with database.write() as connection:
                    _save_positions(connection, run_id, batches)
                    if grouped.scalars or grouped.entries:  # empty if all records are void or damaged
                        append(connection, run_id, grouped.scalars, grouped.entries)
            except _ConcurrentUpdate:
                continue
            total += sum(len(journal.batch.records) for journal in batches)
            if is_complete:  # do not wait for a script that keeps logging
                return total


def dropped_points(database: Database, run_id: str) -> int:
    """The number of points that the run's processes could not write because their disk was full."""
    with database.read() as connection:
        rows = connection.execute(select(schema.journals.c.dropped).where(schema.journals.c.run_id == run_id))
        return sum(dropped for (dropped,) in rows)


@dataclass(frozen=True)
class _JournalBatch:
    reader: JournalReader
    stem: str
    before: Position | None
    batch: Batch


@dataclass(frozen=True)
class _Grouped:
    scalars: dict[str, Columns]
    entries: dict[tuple[str, str], list[Entry]]


class _ConcurrentUpdate(Exception):
    """Another process stored these records first."""


# weak: a lock per run would stay in memory for the life of the yard
_locks: WeakValueDictionary[tuple[str, str], threading.Lock] = WeakValueDictionary()
_locks_lock = threading.Lock()


@contextmanager
def _run_lock(database: Database, run_id: str) -> Iterator[None]:
    with _locks_lock:
        lock = _locks.setdefault((str(database.path), run_id), threading.Lock())
    with lock:
        yield


def _read_round(database: Database, run_id: str, folder: Path, final: bool) -> tuple[list[_JournalBatch], bool]:
    """New records of all journals, and whether these are all. Each journal gets an equal share of a round, so that
    points of different processes are merged by time."""
    journals = stems(folder)
    if not journals:
        return [], True
    with database.read() as connection:
        table = schema.journals.c
        rows = connection.execute(
            select(table.name, table.segment, table.slot, table.dropped).where(table.run_id == run_id)
        )
        positions = {name: Position(segment, slot, dropped) for name, segment, slot, dropped in rows}
    share = max(_ROUND_RECORDS // len(journals), 1)
    batches = []
    for stem in journals:
        reader, before = JournalReader(folder, stem), positions.get(stem)
        batch = reader.read(before or Position(), limit=share, final=final)
        if len(batch.records) or batch.position.dropped > (before or Position()).dropped:
            batches.append(_JournalBatch(reader, stem, before, batch))
    has_more = any(journal.batch.is_cut or len(journal.batch.records) >= share for journal in batches)
    return batches, not final and not has_more


def _save_positions(connection: Connection, run_id: str, batches: list[_JournalBatch]) -> None:
    """Must be first in the transaction: it takes the write lock and detects a concurrent update."""
    table = schema.journals
    for journal in batches:
        position = journal.batch.position
        values = {"segment": position.segment, "slot": position.slot, "dropped": position.dropped}
        if journal.before is None:
            try:
                connection.execute(insert(table).values(run_id=run_id, name=journal.stem, **values))
            except IntegrityError as error:
                raise _ConcurrentUpdate from error
        else:
            result = connection.execute(
                update(table)
                .where(table.c.run_id == run_id, table.c.name == journal.stem)
                .where(table.c.segment == journal.before.segment, table.c.slot == journal.before.slot)
                .values(**values)
            )
            if result.rowcount != 1:
                raise _ConcurrentUpdate


def _group_by_metric(batches: list[_JournalBatch]) -> _Grouped:
    """Group the records of all processes by metric, sorted by time."""
    numbers: dict[str, int] = {}
    records = np.concatenate([journal.batch.records for journal in batches])
    metrics = np.empty(len(records), np.int64)
    owners = np.repeat(np.arange(len(batches)), [len(journal.batch.records) for journal in batches])
    order_times = np.empty(len(records))
    start = 0
    for journal in batches:
        part = journal.batch.records
        span = slice(start, start + len(part))
        start += len(part)
        metrics[span] = _metric_numbers(journal, numbers)
        # a clock that is set back must not reorder the points of one process
        order_times[span] = np.maximum.accumulate(part["time"])
    if len(batches) > 1:
        by_time = np.argsort(order_times, kind="stable")
        records, metrics, owners = records[by_time], metrics[by_time], owners[by_time]
    grouped = _Grouped({}, {})
    ranks = np.array([journal.batch.rank for journal in batches], np.int32)[owners]
    if len(numbers) > 1:
        by_metric = np.argsort(metrics.astype(np.uint16 if len(numbers) < 1 << 16 else np.int64), kind="stable")
        records, metrics, owners, ranks = records[by_metric], metrics[by_metric], owners[by_metric], ranks[by_metric]
    edges = np.searchsorted(metrics, np.arange(len(numbers) + 1))
    for name, number in numbers.items():
        span = slice(int(edges[number]), int(edges[number + 1]))
        if span.start < span.stop:
            _add_metric(grouped, name, records[span], owners[span], ranks[span], batches)
    return grouped


def _metric_numbers(journal: _JournalBatch, numbers: dict[str, int]) -> Any:
    """The number of each record's metric, among the metrics of all processes."""
    metrics, names = journal.batch.records["metric"], journal.reader.names()
    highest = int(metrics.max(initial=0))
    used: Iterable[int] = range(highest + 1)
    if highest > 2 * len(names) + 1000:  # not by the writer, which counts from 0: a table of all would be too large
        distinct, metrics = np.unique(metrics, return_inverse=True)
        used = distinct.tolist()
    # after a power failure, the last names may be missing although their records exist
    local = [names.get(number) or f"unnamed metric {number}" for number in used]
    return np.array([numbers.setdefault(name, len(numbers)) for name in local], np.int64)[metrics]


def _add_metric(
    grouped: _Grouped, name: str, records: Records, owners: Any, ranks: Any, batches: list[_JournalBatch]
) -> None:
    lines: dict[int, Any] = {}
    if (records["kind"] > layout.NONE).any():
        lines = _side_lines(name, records, owners, batches)
    parts: list[Columns] = []
    begin = 0
    for index in [*np.flatnonzero(records["kind"] > layout.BIG_INT).tolist(), len(records)]:
        if begin < index:
            parts.append(_points(records[begin:index], ranks[begin:index], lines, begin))
        begin = index + 1
        if index not in lines:
            continue
        record, kind = records[index], int(records["kind"][index])
        if kind == layout.LIST:
            parts.append(_list_points(lines[index], record, ranks[index]))
        else:
            entry = Entry(int(record["step"]), float(record["time"]), int(ranks[index]), _content(kind, lines[index]))
            grouped.entries.setdefault(_key(grouped, name, LOGGED_KINDS[kind]), []).append(entry)
    if parts:
        grouped.scalars[name] = join(parts)


def _key(grouped: _Grouped, name: str, kind: str) -> tuple[str, str]:
    """Rows and tables of one name form one series, with the kind that was logged first."""
    return next((key for key in grouped.entries if key[0] == name and family(key[1]) == family(kind)), (name, kind))


def _content(kind: int, line: Any) -> Any:
    return {column: [value] for column, value in line.items()} if kind == layout.ROW else line


def _side_lines(name: str, records: Records, owners: Any, batches: list[_JournalBatch]) -> dict[int, Any]:
    """The values of the records' side lines by index, without those that are not what their kind requires."""
    kinds = records["kind"]
    lines: dict[int, Any] = {}
    for owner, journal in enumerate(batches):
        selected = np.flatnonzero((owners == owner) & (kinds > layout.NONE) & (kinds != layout.VOID))
        if len(selected):
            values = journal.reader.side_lines(records["value"][selected].tolist())
            for index, kind, line in zip(selected.tolist(), kinds[selected].tolist(), values):
                value = validate_line(kind, name, line)
                if value is not None:
                    lines[index] = value
    return lines


def _points(records: Records, ranks: Any, lines: dict[int, Any], begin: int) -> Columns:
    values = np.ascontiguousarray(records["value"])
    textual = np.flatnonzero(records["kind"] > layout.NONE)
    values[textual] = np.arange(len(textual))
    record_kinds = records["kind"].astype(np.uint8)
    # a number whose line is damaged could not be read as one
    record_kinds[[index for index in textual.tolist() if begin + index not in lines]] = layout.TEXT
    return Columns(
        np.ascontiguousarray(records["step"]),
        np.ascontiguousarray(records["time"]),
        values,
        ranks,
        record_kinds,
        [str(lines.get(begin + index, "")) for index in textual.tolist()],
    )


def _list_points(values: list[Any], record: Any, rank: Any) -> Columns:
    """One point for each value of a list record, with the record's step and time."""
    bits = np.empty(len(values), np.int64)
    kinds = np.empty(len(values), np.uint8)
    texts: list[str] = []
    for index, value in enumerate(values):
        kinds[index] = record_kind(value)
        if kinds[index] == layout.FLOAT:
            bits[index] = np.float64(value).view(np.int64)
        elif kinds[index] in (layout.TEXT, layout.BIG_INT):
            bits[index] = len(texts)
            texts.append(str(value))
        else:
            bits[index] = value or 0
    count = len(values)
    return Columns(
        np.full(count, record["step"]),
        np.full(count, record["time"]),
        bits,
        np.full(count, rank, np.int32),
        kinds,
        texts,
    )
