"""The stored form of a metric: a row that describes it, and blocks with its points in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from runyard.store import schema
from runyard.store.runs import note_change
from runyard.tracking.blocks import BLOCK_POINTS, Columns, decode, encode, join, summarize

SCALAR, ROW, TABLE, IMAGE = "scalar", "row", "table", "image"  # beside those of runyard.context.documents
_SHORT = 200  # characters of a text that a listing shows

_described = select(schema.series.c.series_id, schema.series.c.name, schema.series.c.kind, schema.series.c.count)


@dataclass(frozen=True)
class Entry:
    """What is no single value: a row, a table, an image, a document, as one record brought it."""

    step: int
    time: float
    rank: int
    content: Any  # {column: [values]}, the image's path, the text, or the document's data


@dataclass(frozen=True)
class Series:
    series_id: int
    name: str
    kind: str
    count: int


def family(kind: str) -> str:
    """Rows and tables of one name are one series; other kinds keep to themselves."""
    return ROW if kind == TABLE else kind


def brief(kind: str, content: Any) -> Any:
    """What a listing says of an entry: the last row, the file, how a text begins, or what it is."""
    if family(kind) == ROW:
        return {column: values[-1] for column, values in content.items() if values}
    if isinstance(content, str):
        return content if len(content) <= _SHORT else content[: _SHORT - 1] + "…"
    return kind.replace("_", " ")


def find_series(connection: Connection, run_id: str, name: str) -> Optional[Series]:
    row = connection.execute(_described.where(schema.series.c.run_id == run_id, schema.series.c.name == name)).first()
    return None if row is None else Series(*row)


def all_series(connection: Connection, run_id: str) -> list[Series]:
    return [Series(*row) for row in connection.execute(_described.where(schema.series.c.run_id == run_id))]


def append(
    connection: Connection, run_id: str, scalars: Mapping[str, Columns], entries: Mapping[tuple[str, str], list[Entry]]
) -> None:
    """Puts what came at the end of its series, in a few statements however many series there are."""
    coming: dict[tuple[str, str], Columns | list[Entry]] = {
        (name, SCALAR): columns for name, columns in scalars.items()
    }
    coming.update(entries)
    # whatever their kinds, metrics are listed in the order in which they were first logged
    coming = dict(sorted(coming.items(), key=lambda item: _first_time(item[1])))
    places = _places(connection, run_id, coming)
    replaced = [
        {"of_series": place.series.series_id, "from_number": place.number} for place in places if place.absorbed
    ]
    if replaced:
        connection.execute(_FORGET, replaced)
    rows = [row for place in places for row in _blocks(place)]
    connection.execute(insert(schema.blocks), rows)
    connection.execute(
        _GROW,
        [{"of_series": place.series.series_id, "added": len(place.coming), "newest": _last(place)} for place in places],
    )
    if "/" not in run_id:  # what the agents measured is nobody's news
        note_change(connection, run_id)


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


@dataclass(frozen=True)
class _Place:
    """Where what comes for one series goes: from block ``number`` on, after the small blocks that it takes in."""

    series: Series
    coming: Columns | list[Entry]
    number: int
    first: int
    absorbed: list[bytes]


_blocks_of = schema.blocks.c
_FORGET = delete(schema.blocks).where(
    _blocks_of.series_id == bindparam("of_series"), _blocks_of.number >= bindparam("from_number")
)
_DATA = select(_blocks_of.data).where(
    _blocks_of.series_id == bindparam("of_series"), _blocks_of.number == bindparam("of_number")
)
_GROW = (
    update(schema.series)
    .where(schema.series.c.series_id == bindparam("of_series"))
    .values(count=schema.series.c.count + bindparam("added"), last=bindparam("newest"))
)


def _first_time(coming: Columns | list[Entry]) -> float:
    return float(coming.times[0]) if isinstance(coming, Columns) else coming[0].time


def _places(
    connection: Connection, run_id: str, coming: Mapping[tuple[str, str], Columns | list[Entry]]
) -> list[_Place]:
    series = _series_for(connection, run_id, list(coming))
    numbers: dict[int, int] = {}
    small: dict[int, list[tuple[int, int, int]]] = {}
    wanted = [found.series_id for found in series.values()]
    for begin in range(0, len(wanted), 500):  # below SQLite's limit of variables
        among = _blocks_of.series_id.in_(wanted[begin : begin + 500])
        last = select(_blocks_of.series_id, func.max(_blocks_of.number)).where(among).group_by(_blocks_of.series_id)
        for series_id, number in connection.execute(last):
            numbers[series_id] = number
        # blocks that are not full are always the last ones of their series
        parts = select(_blocks_of.series_id, _blocks_of.number, _blocks_of.first, _blocks_of.count)
        parts = parts.where(among, _blocks_of.count < BLOCK_POINTS).order_by(_blocks_of.number.desc())
        for series_id, *block in connection.execute(parts):
            small.setdefault(series_id, []).append((block[0], block[1], block[2]))
    return [
        _place(connection, found, coming[key], numbers.get(found.series_id, -1) + 1, small.get(found.series_id, []))
        for key, found in series.items()
    ]


def _place(
    connection: Connection,
    series: Series,
    coming: Columns | list[Entry],
    number: int,
    small: list[tuple[int, int, int]],
) -> _Place:
    """A small block is taken in when it is not much larger than what comes.

    Filling up the last block each time would write it anew for every few points of a live run; this way each point
    is written a few times at most, and the blocks that are not full are few.
    """
    first, weight = series.count, len(coming)
    absorbed: list[bytes] = []
    for its_number, its_first, its_count in small:
        if its_count > 2 * weight:
            break
        found = connection.execute(_DATA, {"of_series": series.series_id, "of_number": its_number})
        absorbed.insert(0, found.scalar_one())
        number, first = its_number, its_first
        weight += its_count
    return _Place(series, coming, number, first, absorbed)


def _series_for(connection: Connection, run_id: str, keys: list[tuple[str, str]]) -> dict[tuple[str, str], Series]:
    """Who comes first gives a name its kind; what is of another kind is kept beside it, as ``loss (row)``."""
    known = {series.name: series for series in all_series(connection, run_id)}
    names: dict[tuple[str, str], str] = {}
    kinds = {name: series.kind for name, series in known.items()}
    for name, kind in keys:
        shown = name
        while family(kinds.setdefault(shown, kind)) != family(kind):
            shown = f"{shown} ({family(kind)})"
        names[name, kind] = shown
    fresh = [{"run_id": run_id, "name": name, "kind": kinds[name], "count": 0} for name in kinds if name not in known]
    if fresh:
        connection.execute(insert(schema.series), fresh)
        known = {series.name: series for series in all_series(connection, run_id)}
    return {key: known[shown] for key, shown in names.items()}


def _blocks(place: _Place) -> Iterator[dict[str, Any]]:
    if isinstance(place.coming, Columns):
        points = join([*(decode(data) for data in place.absorbed), place.coming])
        for number, start in enumerate(range(0, len(points), BLOCK_POINTS)):
            part = points.take(slice(start, start + BLOCK_POINTS))
            yield _block(place, number, start, len(part), encode(part), _range(part), summarize(part))
        return
    whole = [entry for data in place.absorbed for entry in decode_entries(data)] + place.coming
    for number, start in enumerate(range(0, len(whole), BLOCK_POINTS)):
        some = whole[start : start + BLOCK_POINTS]
        data = json.dumps([[e.step, e.time, e.rank, e.content] for e in some], separators=(",", ":")).encode()
        yield _block(place, number, start, len(some), data, (None, None), None)


def _block(
    place: _Place,
    number: int,
    start: int,
    count: int,
    data: bytes,
    extent: tuple[Optional[float], Optional[float]],
    summary: Optional[bytes],
) -> dict[str, Any]:
    return {
        "series_id": place.series.series_id,
        "number": place.number + number,
        "first": place.first + start,
        "count": count,
        "minimum": extent[0],
        "maximum": extent[1],
        "summary": summary,
        "data": data,
    }


def _range(columns: Columns) -> tuple[Optional[float], Optional[float]]:
    numbers = columns.numbers()
    numbers = numbers[~np.isnan(numbers)]
    return (float(numbers.min()), float(numbers.max())) if len(numbers) else (None, None)


def _last(place: _Place) -> Any:
    coming = place.coming
    if isinstance(coming, Columns):
        return coming.take(slice(len(coming) - 1, None)).plain()[0]
    return brief(place.series.kind, coming[-1].content)
