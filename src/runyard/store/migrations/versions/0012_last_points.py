"""The last point of each metric by step and time, and the ranges of steps and times of each block.

Before, the last value was the one that was stored last, although clients may send points in any order.
"""

import json
import struct
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_HEAD = struct.Struct("<HHII")  # of a block: version, constant columns, number of points, length of the texts
_COLUMNS = ("<i8", "<f8", "<i8", "<i4", "u1")  # steps, times, values, ranks, kinds
_NO_STEP = -(2**63)
_BATCH = 500  # below SQLite's limit of variables
_FLOAT, _INT, _BOOL, _TEXT, _BIG_INT = 1, 2, 3, 5, 6


class _Last(NamedTuple):
    position: int
    step: int
    time: float
    value: Any


def upgrade() -> None:
    for name, kind in (("last_index", sa.Integer()), ("last_step", sa.Integer()), ("last_time", sa.Float())):
        op.add_column("series", sa.Column(name, kind, nullable=True))
    for name in ("minimum_step", "maximum_step"):
        op.add_column("blocks", sa.Column(name, sa.Integer(), nullable=True))
    for name in ("minimum_time", "maximum_time"):
        op.add_column("blocks", sa.Column(name, sa.Float(), nullable=True))
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT series_id, count FROM series WHERE kind = 'scalar'"))
    counts: dict[int, int] = dict(rows.tuples().all())
    series_ids = sorted(counts)
    for begin in range(0, len(series_ids), _BATCH):
        _upgrade_series(connection, {series_id: counts[series_id] for series_id in series_ids[begin : begin + _BATCH]})


def _upgrade_series(connection: sa.Connection, counts: dict[int, int]) -> None:
    last: dict[int, _Last] = {}
    ranges = []
    query = sa.text(
        "SELECT series_id, number, first, data FROM blocks WHERE series_id IN :ids ORDER BY series_id, number"
    )
    query = query.bindparams(sa.bindparam("ids", list(counts), expanding=True))
    for series_id, number, first, data in connection.execute(query):
        columns, texts = _decode(data)
        steps, times = columns[0], columns[1]
        extremes = (int(steps.min()), int(steps.max()), float(times.min()), float(times.max()))
        names = ("low_step", "high_step", "low_time", "high_time")
        ranges.append({"id": series_id, "number": number, **dict(zip(names, extremes))})
        last[series_id] = _choose(last.get(series_id), columns, texts, first)
    if not last:
        return
    connection.execute(
        sa.text(
            "UPDATE blocks SET minimum_step = :low_step, maximum_step = :high_step, minimum_time = :low_time, "
            "maximum_time = :high_time WHERE series_id = :id AND number = :number"
        ),
        ranges,
    )
    connection.execute(
        sa.text("UPDATE series SET last_index = :index, last_step = :step, last_time = :time WHERE series_id = :id"),
        [{"id": id, "index": point.position, "step": point.step, "time": point.time} for id, point in last.items()],
    )
    changed = [
        {"id": id, "last": json.dumps(point.value)} for id, point in last.items() if point.position != counts[id] - 1
    ]
    if changed:
        connection.execute(sa.text("UPDATE series SET last = :last WHERE series_id = :id"), changed)


def _decode(data: bytes) -> tuple[list[Any], list[str]]:
    _, constant, count, text_bytes = _HEAD.unpack_from(data)
    position = _HEAD.size
    columns = []
    for bit, kind in enumerate(_COLUMNS):
        size = 1 if constant >> bit & 1 else count
        column = np.frombuffer(data, kind, size, position)
        position += size * column.itemsize
        columns.append(np.repeat(column, count) if size != count else column)
    columns[1] = np.nan_to_num(columns[1])
    return columns, json.loads(data[position : position + text_bytes]) if text_bytes else []


def _choose(last: _Last | None, columns: list[Any], texts: list[str], first: int) -> _Last:
    """A point without a step is the last one when it is logged, and has the highest step until then."""
    steps, times = columns[0], columns[1]
    begin = 0
    without_step = np.flatnonzero(steps == _NO_STEP)
    if len(without_step):
        begin = int(without_step[-1]) + 1
        step = max(int(steps[:begin].max()), _NO_STEP if last is None else last.step)
        last = _Last(first + begin - 1, step, float(times[begin - 1]), _value(columns, texts, begin - 1))
        if begin == len(steps):
            return last
    newest = begin + np.flatnonzero(steps[begin:] == steps[begin:].max())
    index = int(newest[np.flatnonzero(times[newest] == times[newest].max())[-1]])
    step, time = int(steps[index]), float(times[index])
    if last is not None and (step, time) < (last.step, last.time):
        return last
    return _Last(first + index, step, time, _value(columns, texts, index))


def _value(columns: list[Any], texts: list[str], index: int) -> Any:
    kind, bits = int(columns[4][index]), columns[2][index : index + 1]
    if kind == _FLOAT:
        return float(bits.view("<f8")[0])
    if kind == _INT:
        return int(bits[0])
    if kind == _BOOL:
        return bool(bits[0])
    if kind == _TEXT:
        return texts[int(bits[0])]
    return int(texts[int(bits[0])]) if kind == _BIG_INT else None
