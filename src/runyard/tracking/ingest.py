"""From the journals of a run into the database: every point once, whatever is killed when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from runyard.context import format as layout
from runyard.context.documents import KIND_OF_RECORD
from runyard.context.values import record_kind
from runyard.store import schema
from runyard.store.database import Database
from runyard.tracking.blocks import Columns, join
from runyard.tracking.journal_reader import Batch, JournalReader, Position, Records, stems
from runyard.tracking.series import IMAGE, ROW, TABLE, Entry, append, family

_ROUND_RECORDS = 1 << 19  # bounds the memory and the length of one transaction


def ingest(database: Database, run_id: str, journal_folder: Path, *, final: bool = False) -> int:
    """Stores what the run's processes have logged since the last time; returns how many records that was.

    The new positions are saved in the transaction that stores the points. Several threads, and processes, may call it
    at once. ``final`` says that no process of the run is left, on any machine: then nothing is waited for.
    """
    total = 0
    with _one_at_a_time(database, run_id):
        while True:
            read, is_all = _read_round(database, run_id, journal_folder, final)
            if not read:
                return total
            prepared = _arrange(read)
            try:
                with database.write() as connection:
                    _save_positions(connection, run_id, read)
                    if prepared.scalars or prepared.entries:  # not where all were taken back, or are damaged
                        append(connection, run_id, prepared.scalars, prepared.entries)
            except _ReadByAnother:
                continue
            total += sum(len(journal.batch.records) for journal in read)
            if is_all:  # a script that goes on logging must not keep its reader busy for its whole life
                return total


def dropped_points(database: Database, run_id: str) -> int:
    """How many points the run's processes could not write, because their disk was full."""
    with database.read() as connection:
        rows = connection.execute(select(schema.journals.c.dropped).where(schema.journals.c.run_id == run_id))
        return sum(dropped for (dropped,) in rows)


@dataclass(frozen=True)
class _Read:
    reader: JournalReader
    stem: str
    before: Position | None
    batch: Batch


@dataclass(frozen=True)
class _Prepared:
    scalars: dict[str, Columns]
    entries: dict[tuple[str, str], list[Entry]]


class _ReadByAnother(Exception):
    """Another process stored these records first."""


_locks: dict[tuple[str, str], threading.Lock] = {}


@contextmanager
def _one_at_a_time(database: Database, run_id: str) -> Iterator[None]:
    with _locks.setdefault((str(database.path), run_id), threading.Lock()):
        yield


def _read_round(database: Database, run_id: str, folder: Path, final: bool) -> tuple[list[_Read], bool]:
    """The journals with something new, and whether that is all there was. Each gives its part of a round, so that their
    points mix by time."""
    found = stems(folder)
    if not found:
        return [], True
    with database.read() as connection:
        table = schema.journals.c
        rows = connection.execute(
            select(table.name, table.segment, table.slot, table.dropped).where(table.run_id == run_id)
        )
        positions = {name: Position(segment, slot, dropped) for name, segment, slot, dropped in rows}
    share = max(_ROUND_RECORDS // len(found), 1)
    read = []
    for stem in found:
        reader, before = JournalReader(folder, stem), positions.get(stem)
        batch = reader.read(before or Position(), limit=share, final=final)
        if len(batch.records) or batch.position.dropped > (before or Position()).dropped:
            read.append(_Read(reader, stem, before, batch))
    return read, not final and all(len(journal.batch.records) < share for journal in read)


def _save_positions(connection: Connection, run_id: str, read: list[_Read]) -> None:
    """First in the transaction: it takes the writer's lock, and fails when the position has moved meanwhile."""
    table = schema.journals
    for journal in read:
        position = journal.batch.position
        values = {"segment": position.segment, "slot": position.slot, "dropped": position.dropped}
        if journal.before is None:
            try:
                connection.execute(insert(table).values(run_id=run_id, name=journal.stem, **values))
            except IntegrityError as error:
                raise _ReadByAnother from error
        else:
            moved = connection.execute(
                update(table)
                .where(table.c.run_id == run_id, table.c.name == journal.stem)
                .where(table.c.segment == journal.before.segment, table.c.slot == journal.before.slot)
                .values(**values)
            )
            if moved.rowcount != 1:
                raise _ReadByAnother


def _arrange(read: list[_Read]) -> _Prepared:
    """Records of all processes by metric, each metric's in the order of time."""
    numbers: dict[str, int] = {}
    records = np.concatenate([journal.batch.records for journal in read])
    metrics = np.empty(len(records), np.int64)
    owners = np.repeat(np.arange(len(read)), [len(journal.batch.records) for journal in read])
    order_times = np.empty(len(records))
    at = 0
    for journal in read:
        part = journal.batch.records
        span = slice(at, at + len(part))
        at += len(part)
        names = _names(journal)
        local = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        metrics[span] = local[part["metric"]]
        # a clock that is set back must not turn one process's points around
        order_times[span] = np.maximum.accumulate(part["time"])
    if len(read) > 1:
        by_time = np.argsort(order_times, kind="stable")
        records, metrics, owners = records[by_time], metrics[by_time], owners[by_time]
    prepared = _Prepared({}, {})
    ranks = np.array([journal.batch.rank for journal in read], np.int32)[owners]
    if len(numbers) > 1:
        by_metric = np.argsort(metrics.astype(np.uint16 if len(numbers) < 1 << 16 else np.int64), kind="stable")
        records, metrics, owners, ranks = records[by_metric], metrics[by_metric], owners[by_metric], ranks[by_metric]
    edges = np.searchsorted(metrics, np.arange(len(numbers) + 1))
    for name, number in numbers.items():
        span = slice(int(edges[number]), int(edges[number + 1]))
        if span.start < span.stop:
            _arrange_metric(prepared, name, records[span], owners[span], ranks[span], read)
    return prepared


def _names(journal: _Read) -> list[str]:
    names = journal.reader.names()
    count = int(journal.batch.records["metric"].max(initial=0)) + 1
    # a power cut may have taken the end of the names and left the records
    return [names.get(number) or f"unnamed metric {number}" for number in range(count)]


def _arrange_metric(
    prepared: _Prepared, name: str, records: Records, owners: Any, ranks: Any, read: list[_Read]
) -> None:
    lines: dict[int, Any] = {}
    if (records["kind"] > layout.NONE).any():
        lines = _side_lines(records, owners, read)
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
            parts.append(_listed(lines[index], record, ranks[index]))
        else:
            entry = Entry(int(record["step"]), float(record["time"]), int(ranks[index]), _content(kind, lines[index]))
            prepared.entries.setdefault(_key(prepared, name, _KINDS[kind]), []).append(entry)
    if parts:
        prepared.scalars[name] = join(parts)


_KINDS = {layout.ROW: ROW, layout.TABLE: TABLE, layout.IMAGE: IMAGE, **KIND_OF_RECORD}


def _key(prepared: _Prepared, name: str, kind: str) -> tuple[str, str]:
    """Rows and tables of one name go on with each other, under the kind that came first."""
    return next((key for key in prepared.entries if key[0] == name and family(key[1]) == family(kind)), (name, kind))


def _content(kind: int, line: Any) -> Any:
    return {column: [value] for column, value in line.items()} if kind == layout.ROW else line


def _side_lines(records: Records, owners: Any, read: list[_Read]) -> dict[int, Any]:
    kinds = records["kind"]
    lines: dict[int, Any] = {}
    for owner, journal in enumerate(read):
        chosen = np.flatnonzero((owners == owner) & (kinds > layout.NONE) & (kinds != layout.VOID))
        if len(chosen):
            lines.update(zip(chosen.tolist(), journal.reader.side(records["value"][chosen].tolist())))
    return {index: line for index, line in lines.items() if line is not None}


def _points(records: Records, ranks: Any, lines: dict[int, Any], begin: int) -> Columns:
    values = np.ascontiguousarray(records["value"])
    textual = np.flatnonzero(records["kind"] > layout.NONE)
    values[textual] = np.arange(len(textual))
    return Columns(
        np.ascontiguousarray(records["step"]),
        np.ascontiguousarray(records["time"]),
        values,
        ranks,
        records["kind"].astype(np.uint8),
        [str(lines.get(begin + index, "")) for index in textual.tolist()],
    )


def _listed(values: list[Any], record: Any, rank: Any) -> Columns:
    """The values of one record, each a point; they share its step and time."""
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
