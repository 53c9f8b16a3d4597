"""Points of a metric on the wire: three arrays of 64-bit numbers, little-endian, after a short head."""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Any, NamedTuple

from runyard.errors import RunyardException

NO_STEP = -(2**63)
MEDIA_TYPE = "application/vnd.runyard.points"

_HEAD = struct.Struct("<4sIQ")
_MAGIC = b"RYP1"


class WirePoints(NamedTuple):
    steps: array[int]  # NO_STEP where none was given
    times: array[float]
    values: array[float]  # NaN for what is not a number
    next: int  # the cursor to ask on from


def pack_points(count: int, cursor: int, steps: bytes, times: bytes, values: bytes) -> bytes:
    return b"".join((_HEAD.pack(_MAGIC, count, cursor), steps, times, values))


def decode_points(data: bytes) -> WirePoints:
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise RunyardException("these bytes are not points of a metric")
    _, count, cursor = _HEAD.unpack_from(data)
    if len(data) != _HEAD.size + 24 * count:
        raise RunyardException(f"the points of a metric arrived cut short: {len(data)} bytes for {count} points")
    steps, times, values = array("q"), array("d"), array("d")
    _fill(steps, data, _HEAD.size, count)
    _fill(times, data, _HEAD.size + 8 * count, count)
    _fill(values, data, _HEAD.size + 16 * count, count)
    return WirePoints(steps, times, values, cursor)


def _fill(column: array[Any], data: bytes, begin: int, count: int) -> None:
    column.frombytes(memoryview(data)[begin : begin + 8 * count])
    if sys.byteorder == "big":
        column.byteswap()
