"""Points of a metric as columns, and their binary encoding in blocks of a few thousand."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from runyard.context import format as layout

if TYPE_CHECKING:
    from runyard.context.values import Plain

BLOCK_POINTS = 4096
BUCKET_POINTS = 256  # a block's summary has the minimum and maximum of each bucket of this size, and NaN

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]

# version, bit mask of constant columns, number of points, length of the texts at the end
_HEAD = struct.Struct("<HHII")
_COLUMNS: tuple[tuple[str, np.dtype[Any]], ...] = (
    ("steps", np.dtype("<i8")),
    ("times", np.dtype("<f8")),
    ("values", np.dtype("<i8")),
    ("ranks", np.dtype("<i4")),
    ("kinds", np.dtype("u1")),
)


@dataclass(frozen=True)
class Columns:
    """Points of one metric. ``values`` are 64 bits each, interpreted by kind; for texts an index into ``texts``."""

    steps: Integers
    times: Floats
    values: Integers
    ranks: npt.NDArray[np.int32]
    kinds: Bytes
    texts: Sequence[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, chosen: Indices | slice) -> Columns:
        part = Columns(
            self.steps[chosen], self.times[chosen], self.values[chosen], self.ranks[chosen], self.kinds[chosen]
        )
        if not self.texts:
            return part
        textual = np.flatnonzero(_is_text(part.kinds))
        texts = [self.texts[index] for index in part.values[textual]]
        values = part.values.copy()
        values[textual] = np.arange(len(texts))
        return Columns(part.steps, part.times, values, part.ranks, part.kinds, texts)

    def numbers(self) -> Floats:
        """The values as floats; NaN for values that are not numbers."""
        as_floats = self.values.view(np.float64)
        kinds = self.kinds
        if (kinds == layout.FLOAT).all():
            return as_floats
        result = np.full(len(self), np.nan)
        floats = kinds == layout.FLOAT
        result[floats] = as_floats[floats]
        integers = (kinds == layout.INT) | (kinds == layout.BOOL)
        result[integers] = self.values[integers]
        for index in np.flatnonzero(kinds == layout.BIG_INT):
            result[index] = as_float(int(self.texts[self.values[index]]))
        return result

    def plain(self) -> list[Plain]:
        """The values as Python objects of the logged kinds."""
        kinds = self.kinds
        if not len(self):
            return []
        if (kinds == kinds[0]).all() and kinds[0] in (layout.FLOAT, layout.INT):
            uniform: list[Plain] = (self.values.view(np.float64) if kinds[0] == layout.FLOAT else self.values).tolist()
            return uniform
        floats = self.values.view(np.float64).tolist()
        result: list[Plain] = []
        for kind, value, as_float in zip(kinds.tolist(), self.values.tolist(), floats):
            if kind == layout.FLOAT:
                result.append(as_float)
            elif kind == layout.INT:
                result.append(value)
            elif kind == layout.BOOL:
                result.append(bool(value))
            elif kind == layout.TEXT:
                result.append(self.texts[value])
            elif kind == layout.BIG_INT:
                result.append(int(self.texts[value]))
            else:
                result.append(None)
        return result


def join(parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    texts: list[str] = []
    values: list[Integers] = []
    for part in parts:
        shifted = part.values
        if part.texts and texts:
            shifted = np.where(_is_text(part.kinds), part.values + len(texts), part.values)
        values.append(shifted)
        texts.extend(part.texts)
    return Columns(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate(values),
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        texts,
    )


def encode(columns: Columns) -> bytes:
    """Serialize columns. A constant column is stored as one value: usually missing steps, ranks and kinds."""
    constant = 0
    pieces: list[bytes] = []
    for bit, (name, kind) in enumerate(_COLUMNS):
        column = getattr(columns, name)
        if len(column) and (column[0] == column).all():
            constant |= 1 << bit
            column = column[:1]
        pieces.append(column.astype(kind, copy=False).tobytes())
    text = json.dumps(list(columns.texts)).encode() if columns.texts else b""
    return b"".join([_HEAD.pack(1, constant, len(columns), len(text)), *pieces, text])


def decode(data: bytes) -> Columns:
    _, constant, count, text_bytes = _HEAD.unpack_from(data)
    position = _HEAD.size
    columns = []
    for bit, (_, kind) in enumerate(_COLUMNS):
        size = 1 if constant >> bit & 1 else count
        column = np.frombuffer(data, kind, size, position)
        position += size * kind.itemsize
        columns.append(np.repeat(column, count) if size != count else column)
    texts = json.loads(data[position : position + text_bytes]) if text_bytes else []
    return Columns(columns[0], columns[1], columns[2], columns[3], columns[4], texts)


def extremes(numbers: Floats, buckets: int) -> Indices:
    """Ascending indices of the minimum and maximum in each of ``buckets`` intervals of equal length.

    They are those of the finite numbers; the first point of each stretch of NaN, infinity or negative infinity is
    included, too, because users look for it. An interval without finite numbers is represented by its first point.
    """
    count = len(numbers)
    if count <= 2 * buckets:
        return np.arange(count)
    edges = np.linspace(0, count, buckets + 1).astype(np.intp)
    size = int(np.diff(edges).max())
    # one row per interval; shorter ones repeat their last number
    grid = np.minimum(edges[:-1, None] + np.arange(size), edges[1:, None] - 1)
    rows = numbers[grid]
    finite = np.isfinite(rows)
    minima = np.where(finite, rows, np.inf).argmin(axis=1)
    maxima = np.where(finite, rows, -np.inf).argmax(axis=1)
    indices = np.arange(buckets)
    parts = [grid[indices, minima], grid[indices, maxima]]
    if not finite.all():
        parts.append(_non_finite_starts(numbers, edges))
    return np.unique(np.concatenate(parts))


def _non_finite_starts(numbers: Floats, edges: Indices) -> Indices:
    """Indices of the first point of each stretch of equal non-finite numbers.

    Of more stretches than intervals, those that are the first of their kind in an interval: a series in which every
    other number is NaN must not be returned completely.
    """
    kinds = np.where(np.isnan(numbers), 1, np.where(numbers == np.inf, 2, np.where(numbers == -np.inf, 3, 0)))
    starts = np.flatnonzero((kinds != 0) & (np.diff(kinds, prepend=0) != 0))
    if len(starts) < len(edges):
        return starts
    intervals = np.searchsorted(edges, starts, side="right")
    _, first = np.unique(intervals * 4 + kinds[starts], return_index=True)
    chosen: Indices = starts[first]
    return chosen


def summarize(columns: Columns) -> bytes | None:
    """Encode the extremes of a block, for charts; None if the block itself is small."""
    if len(columns) <= 2 * BUCKET_POINTS:
        return None
    return encode(columns.take(extremes(columns.numbers(), -(-len(columns) // BUCKET_POINTS))))


def as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("-inf" if value < 0 else "inf")


def _is_text(kinds: Bytes) -> npt.NDArray[np.bool_]:
    textual: npt.NDArray[np.bool_] = (kinds == layout.TEXT) | (kinds == layout.BIG_INT)
    return textual
