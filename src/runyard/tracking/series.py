"""The stored form of a metric: a row that describes it, and blocks with its points in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from sqlalchemy import Connection, delete, insert, select, update

from runyard.store import schema
from runyard.tracking.blocks import BLOCK_POINTS, Columns, decode, encode, join, summarize

SCALAR, ROW, IMAGE = "scalar", "row", "image"


@dataclass(frozen=True)
class Entry:
    """A row, a table or an image, as one record of a journal brought it."""

    step: int
    time: float
    rank: int
    content: Any  # {column: [values]} or the image's path


@dataclass(frozen=True)
class Series:
    series_id: int
    name: str
    kind: str
    count: int


def find_series(connection: Connection, run_id: str, name: str) -> Optional[Series]:
    table = schema.series.c
    row = connection.execute(
        select(table.series_id, table.name, table.kind, table.count).where(table.run_id == run_id, table.name == name)
    ).first()
    return None if row is None else Series(*row)


def append_points(connection: Connection, run_id: str, name: str, columns: Columns) -> None:
    series = _series_of_kind(connection, run_id, name, SCALAR)
    number, first, absorbed = _absorbed(connection, series, len(columns))
    whole = join([*(decode(tail) for tail in absorbed), columns])
    rows = []
    for start in range(0, len(whole), BLOCK_POINTS):
        part = whole.take(slice(start, start + BLOCK_POINTS))
        numbers = part.numbers()
        numbers = numbers[~np.isnan(numbers)]
        rows.append(
            {
                "first": first + start,
                "count": len(part),
                "minimum": float(numbers.min()) if len(numbers) else None,
                "maximum": float(numbers.max()) if len(numbers) else None,
                "summary": summarize(part),
                "data": encode(part),
            }
        )
    _store(connection, series, number, rows)
    last = columns.take(slice(len(columns) - 1, None)).plain()[0]
    _note(connection, series, len(columns), last)


def append_entries(connection: Connection, run_id: str, name: str, kind: str, entries: list[Entry]) -> None:
    series = _series_of_kind(connection, run_id, name, kind)
    number, first, absorbed = _absorbed(connection, series, len(entries))
    whole = [entry for tail in absorbed for entry in decode_entries(tail)] + entries
    rows = []
    for start in range(0, len(whole), BLOCK_POINTS):
        part = whole[start : start + BLOCK_POINTS]
        data = json.dumps([[e.step, e.time, e.rank, e.content] for e in part], separators=(",", ":")).encode()
        rows.append(
            {
                "first": first + start,
                "count": len(part),
                "minimum": None,
                "maximum": None,
                "summary": None,
                "data": data,
            }
        )
    _store(connection, series, number, rows)
    content = entries[-1].content
    last = {key: values[-1] for key, values in content.items() if values} if kind == ROW else content
    _note(connection, series, len(entries), last)


def decode_entries(data: bytes) -> list[Entry]:
    return [Entry(*parts) for parts in json.loads(data)]


def block_data(
    connection: Connection, series: Series, *, after: int = 0, before: Optional[int] = None
) -> Iterator[Any]:
    """(first, count, data) of the blocks that hold points from index ``after`` up to ``before``, in order."""
    table = schema.blocks.c
    query = select(table.first, table.count, table.data).where(table.series_id == series.series_id)
    if after:
        query = query.where(table.first + table.count > after)
    if before is not None:
        query = query.where(table.first < before)
    yield from connection.execute(query.order_by(table.number))


def _series_of_kind(connection: Connection, run_id: str, name: str, kind: str) -> Series:
    """Who comes first gives a name its kind; what is of another kind is kept beside it, as ``loss (row)``."""
    found = find_series(connection, run_id, name)
    while found is not None and found.kind != kind:
        name = f"{name} ({kind})"
        found = find_series(connection, run_id, name)
    if found is not None:
        return found
    connection.execute(insert(schema.series).values(run_id=run_id, name=name, kind=kind, count=0))
    made = find_series(connection, run_id, name)
    assert made is not None
    return made


def _absorbed(connection: Connection, series: Series, coming: int) -> tuple[int, int, list[bytes]]:
    """The number and first index of the next block to write, and the small blocks at the end that go into it.

    A small block is taken in when it is not much larger than what comes. Filling up the last block each time would
    write it anew for every few points of a live run; this way each point is written a few times at most.
    """
    table = schema.blocks.c
    rows = connection.execute(
        select(table.number, table.first, table.count)
        .where(table.series_id == series.series_id)
        .order_by(table.number.desc())
        .limit(16)
    ).all()
    next_number, next_first = 0, 0
    if rows:
        number, first, count = rows[0]
        next_number, next_first = number + 1, first + count
    absorbed: list[bytes] = []
    for number, first, count in rows:
        if count >= BLOCK_POINTS or count > 2 * coming:
            break
        data = connection.execute(
            select(table.data).where(table.series_id == series.series_id, table.number == number)
        ).scalar_one()
        absorbed.insert(0, data)
        next_number, next_first = number, first
        coming += count
    return next_number, next_first, absorbed


def _store(connection: Connection, series: Series, number: int, rows: list[dict[str, Any]]) -> None:
    table = schema.blocks
    connection.execute(delete(table).where(table.c.series_id == series.series_id, table.c.number >= number))
    connection.execute(
        insert(table),
        [{"series_id": series.series_id, "number": number + index, **row} for index, row in enumerate(rows)],
    )


def _note(connection: Connection, series: Series, added: int, last: Any) -> None:
    table = schema.series
    connection.execute(
        update(table).where(table.c.series_id == series.series_id).values(count=table.c.count + added, last=last)
    )
