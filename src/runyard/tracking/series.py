"""The storage format of a metric: a row in the series table, and blocks with its points in order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from sqlalchemy import Connection, Text, bindparam, delete, func, insert, select, type_coerce, update

from runyard.context.documents import SCALAR
from runyard.store import schema
from runyard.store.database import batches
from runyard.store.run_labels import record_change
from runyard.tracking.blocks import BLOCK_POINTS, Columns, decode, encode, join, summarize
from runyard.tracking.last_point import LastPoint, find_last

ROW, TABLE, IMAGE = "row", "table", "image"  # in addition to those of runyard.context.documents
_PREVIEW_CHARACTERS = 200

_table = schema.series.c
SERIES_COLUMNS = (
    _table.series_id,
    _table.name,
    _table.kind,
    _table.count,
    _table.last_index,
    _table.last_step,
    _table.last_time,
    type_coerce(_table.last, Text),
)
# Built once: constructing a statement takes longer than executing it.
_SELECT_ALL = select(*SERIES_COLUMNS).where(_table.run_id == bindparam("of_run"))
_SELECT_SOME = _SELECT_ALL.where(_table.name.in_(bindparam("names", expanding=True)))


@dataclass(frozen=True)
class Entry:
    """A logged value that is not a scalar: a row, a table, an image or a document."""

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
    # of the last point; None for other kinds than scalars
    last_index: Optional[int]
    last_step: Optional[int]
    last_time: Optional[float]
    last_json: Any  # SQLite returns JSON numbers as numbers

    @property
    def last(self) -> Optional[LastPoint]:
        if self.last_index is None or self.last_step is None:
            return None
        number = to_number(self.last_json)
        return LastPoint(self.last_index, self.last_step, self.last_time or 0.0, math.nan if number is None else number)


def to_number(last: Any) -> Optional[float]:
    """The last value of a series as a float, from JSON as Python writes it; None if it is not a number."""
    try:
        return float(last)  # accepts also NaN and Infinity
    except (TypeError, ValueError):
        return {"true": 1.0, "false": 0.0}.get(last)


def family(kind: str) -> str:
    """The kind that values of a series must share: rows and tables of one name are one series."""
    return ROW if kind == TABLE else kind


def preview(kind: str, content: Any) -> Any:
    """A short form of an entry for listings: the last row, the file, the start of a text, or the kind."""
    if family(kind) == ROW:
        return {column: values[-1] for column, values in content.items() if values}
    if isinstance(content, str):
        return content if len(content) <= _PREVIEW_CHARACTERS else content[: _PREVIEW_CHARACTERS - 1] + "…"
    return kind.replace("_", " ")


def find_series(connection: Connection, run_id: str, name: str) -> Optional[Series]:
    row = connection.execute(_SELECT_SOME, {"of_run": run_id, "names": [name]}).first()
    return None if row is None else Series(*row)


def all_series(connection: Connection, run_id: str) -> list[Series]:
    return [Series(*row) for row in connection.execute(_SELECT_ALL, {"of_run": run_id})]


def find_scalars(connection: Connection, run_id: str, names: Iterable[str]) -> dict[str, Series]:
    """The series that contain the scalars of these names, as far as they exist."""
    scalars: dict[str, Series] = {}
    searched = {name: name for name in names}  # name of the series -> name of the metric
    while searched:
        others: dict[str, str] = {}
        for batch in batches(searched):
            for row in connection.execute(_SELECT_SOME, {"of_run": run_id, "names": batch}):
                series = Series(*row)
                name = searched[series.name]
                if series.kind == SCALAR:
                    scalars[name] = series
                else:
                    others[_other_name(series.name, SCALAR)] = name
        searched = others
    return scalars


def append(
    connection: Connection, run_id: str, scalars: Mapping[str, Columns], entries: Mapping[tuple[str, str], list[Entry]]
) -> None:
    """Append new values to their series, in a constant number of statements."""
    new_values: dict[tuple[str, str], Columns | list[Entry]] = {
        (name, SCALAR): columns for name, columns in scalars.items()
    }
    new_values.update(entries)
    # metrics of all kinds are listed in the order in which they were first logged
    new_values = dict(sorted(new_values.items(), key=lambda item: _first_time(item[1])))
    plans = _plan_all(connection, run_id, new_values)
    merged = [{"of_series": plan.series.series_id, "from_number": plan.number} for plan in plans if plan.merged]
    if merged:
        connection.execute(_DELETE_BLOCKS, merged)
    rows = [row for plan in plans for row in _blocks(plan)]
    connection.execute(insert(schema.blocks), rows)
    _update_series(connection, plans)
    if "/" not in run_id:  # system metrics of the agents do not count as changes of the run
        record_change(connection, run_id)


def decode_entries(data: bytes) -> list[Entry]:
    return [Entry(*parts) for parts in json.loads(data)]


def block_data(
    connection: Connection, series: Series, *, after: int = 0, before: Optional[int] = None
) -> Iterator[Any]:
    """(first, count, data) of the blocks with points from index ``after`` up to ``before``, in order."""
    table = schema.blocks.c
    query = select(table.first, table.count, table.data).where(table.series_id == series.series_id)
    if after:
        query = query.where(table.first + table.count > after)
    if before is not None:
        query = query.where(table.first < before)
    yield from connection.execute(query.order_by(table.number))


def read_last_point(connection: Connection, series: Series) -> Optional[Columns]:
    """The last point of a series; None for other kinds than scalars."""
    index = series.last_index
    if index is None:
        return None
    [(first, _, data)] = block_data(connection, series, after=index, before=index + 1)
    return decode(data).take(slice(index - first, index - first + 1))


@dataclass(frozen=True)
class _AppendPlan:
    """The blocks to write for one series: numbers from ``number`` on, with the values and the merged small blocks."""

    series: Series
    values: Columns | list[Entry]
    number: int
    first: int
    merged: list[bytes]  # data of the blocks that are replaced


_block_table = schema.blocks.c
_OF_SERIES = _block_table.series_id.in_(bindparam("series_ids", expanding=True))
_LAST_BLOCKS = (
    select(_block_table.series_id, func.max(_block_table.number)).where(_OF_SERIES).group_by(_block_table.series_id)
)
# only the last blocks of a series can be smaller than BLOCK_POINTS
_SMALL_BLOCKS = (
    select(_block_table.series_id, _block_table.number, _block_table.first, _block_table.count)
    .where(_OF_SERIES, _block_table.count < BLOCK_POINTS)
    .order_by(_block_table.number.desc())
)
_DELETE_BLOCKS = delete(schema.blocks).where(
    _block_table.series_id == bindparam("of_series"), _block_table.number >= bindparam("from_number")
)
_SELECT_DATA = select(_block_table.data).where(
    _block_table.series_id == bindparam("of_series"), _block_table.number == bindparam("of_number")
)
_UPDATE_COUNT = (
    update(schema.series)
    .where(_table.series_id == bindparam("of_series"))
    .values(count=_table.count + bindparam("added"))
)
_UPDATE_LAST = _UPDATE_COUNT.values(last=bindparam("newest"))
_UPDATE_LAST_POINT = _UPDATE_LAST.values(
    last_index=bindparam("newest_index"), last_step=bindparam("newest_step"), last_time=bindparam("newest_time")
)


def _first_time(values: Columns | list[Entry]) -> float:
    return float(values.times[0]) if isinstance(values, Columns) else values[0].time


def _plan_all(
    connection: Connection, run_id: str, new_values: Mapping[tuple[str, str], Columns | list[Entry]]
) -> list[_AppendPlan]:
    series_by_key = _series_for(connection, run_id, list(new_values))
    numbers: dict[int, int] = {}
    small: dict[int, list[tuple[int, int, int]]] = {}
    series_ids = [series.series_id for series in series_by_key.values()]
    for batch in batches(series_ids):
        for series_id, number in connection.execute(_LAST_BLOCKS, {"series_ids": batch}):
            numbers[series_id] = number
        for series_id, *block in connection.execute(_SMALL_BLOCKS, {"series_ids": batch}):
            small.setdefault(series_id, []).append((block[0], block[1], block[2]))
    return [
        _plan(
            connection, series, new_values[key], numbers.get(series.series_id, -1) + 1, small.get(series.series_id, [])
        )
        for key, series in series_by_key.items()
    ]


def _plan(
    connection: Connection,
    series: Series,
    values: Columns | list[Entry],
    number: int,
    small: list[tuple[int, int, int]],
) -> _AppendPlan:
    """Merge the new values with small blocks that are at most twice as large.

    Filling the last block every time would rewrite it for every few points of a live run. This way each point is
    written a few times at most, and a series has few small blocks.
    """
    first, total = series.count, len(values)
    merged: list[bytes] = []
    for block_number, block_first, block_count in small:
        if block_count > 2 * total:
            break
        row = connection.execute(_SELECT_DATA, {"of_series": series.series_id, "of_number": block_number})
        merged.insert(0, row.scalar_one())
        number, first = block_number, block_first
        total += block_count
    return _AppendPlan(series, values, number, first, merged)


def _series_for(connection: Connection, run_id: str, keys: list[tuple[str, str]]) -> dict[tuple[str, str], Series]:
    """The series for each (name, kind), created if necessary.

    The first value determines the kind of a name; values of another kind get a series such as ``loss (row)``.
    """
    existing = {series.name: series for series in all_series(connection, run_id)}
    names: dict[tuple[str, str], str] = {}
    kinds = {name: series.kind for name, series in existing.items()}
    for name, kind in keys:
        series_name = name
        while family(kinds.setdefault(series_name, kind)) != family(kind):
            series_name = _other_name(series_name, kind)
        names[name, kind] = series_name
    new = [{"run_id": run_id, "name": name, "kind": kinds[name], "count": 0} for name in kinds if name not in existing]
    if new:
        connection.execute(insert(schema.series), new)
        existing = {series.name: series for series in all_series(connection, run_id)}
    return {key: existing[series_name] for key, series_name in names.items()}


def _other_name(name: str, kind: str) -> str:
    return f"{name} ({family(kind)})"


def _blocks(plan: _AppendPlan) -> Iterator[dict[str, Any]]:
    if isinstance(plan.values, Columns):
        points = join([*(decode(data) for data in plan.merged), plan.values])
        for number, start in enumerate(range(0, len(points), BLOCK_POINTS)):
            part = points.take(slice(start, start + BLOCK_POINTS))
            yield _block(plan, number, start, len(part), encode(part), summarize(part), _ranges(part))
        return
    entries = [entry for data in plan.merged for entry in decode_entries(data)] + plan.values
    for number, start in enumerate(range(0, len(entries), BLOCK_POINTS)):
        block = entries[start : start + BLOCK_POINTS]
        data = json.dumps([[e.step, e.time, e.rank, e.content] for e in block], separators=(",", ":")).encode()
        yield _block(plan, number, start, len(block), data, None, _NO_RANGES)


def _block(
    plan: _AppendPlan,
    number: int,
    start: int,
    count: int,
    data: bytes,
    summary: Optional[bytes],
    ranges: Mapping[str, Optional[float]],
) -> dict[str, Any]:
    return {
        "series_id": plan.series.series_id,
        "number": plan.number + number,
        "first": plan.first + start,
        "count": count,
        "summary": summary,
        "data": data,
        **ranges,
    }


_NO_RANGES: dict[str, Optional[float]] = dict.fromkeys(
    ("minimum", "maximum", "minimum_step", "maximum_step", "minimum_time", "maximum_time")
)


def _ranges(columns: Columns) -> dict[str, Optional[float]]:
    numbers = columns.numbers()
    numbers = numbers[~np.isnan(numbers)]
    return {
        "minimum": float(numbers.min()) if len(numbers) else None,
        "maximum": float(numbers.max()) if len(numbers) else None,
        "minimum_step": int(columns.steps.min()),
        "maximum_step": int(columns.steps.max()),
        "minimum_time": float(columns.times.min()),
        "maximum_time": float(columns.times.max()),
    }


def _update_series(connection: Connection, plans: list[_AppendPlan]) -> None:
    """Update the counts, and the last values where they have changed."""
    counts: list[dict[str, Any]] = []
    last_points: list[dict[str, Any]] = []
    last_entries: list[dict[str, Any]] = []
    for plan in plans:
        series, values = plan.series, plan.values
        row: dict[str, Any] = {"of_series": series.series_id, "added": len(values)}
        if not isinstance(values, Columns):
            last_entries.append({**row, "newest": preview(series.kind, values[-1].content)})
            continue
        last = find_last(series.last, values, series.count)
        index = last.position - series.count
        if index < 0:  # an earlier point
            counts.append(row)
            continue
        value = values.take(slice(index, index + 1)).plain()[0]
        point = {"newest_index": last.position, "newest_step": last.step, "newest_time": last.time}
        last_points.append({**row, "newest": value, **point})
    for statement, rows in ((_UPDATE_COUNT, counts), (_UPDATE_LAST_POINT, last_points), (_UPDATE_LAST, last_entries)):
        if rows:
            connection.execute(statement, rows)
