"""Binary format of metric points: a short header, then three little-endian arrays of 64-bit numbers."""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Any, NamedTuple

from runyard.errors import RunyardException

NO_STEP = -(2**63)
MEDIA_TYPE = "application/vnd.runyard.points"

_HEADER = struct.Struct("<4sIQ")
_MAGIC = b"RYP1"


class WirePoints(NamedTuple):
    steps: array[int]  # NO_STEP for points without a step
    times: array[float]
    values: array[float]  # NaN for values that are not numbers
    next: int  # the cursor of the following points


def pack_points(count: int, cursor: int, steps: bytes, times: bytes, values: bytes) -> bytes:
    return b"".join((_HEADER.pack(_MAGIC, count, cursor), steps, times, values))


def decode_points(data: bytes) -> WirePoints:
    if len(data) < _HEADER.size or data[:4] != _MAGIC:
        raise RunyardException("expected metric points, got other data")
    _, count, cursor = _HEADER.unpack_from(data)
    if len(data) != _HEADER.size + 24 * count:
        raise RunyardException(f"truncated metric points: got {len(data)} bytes for {count} points")
    steps, times, values = array("q"), array("d"), array("d")
    _fill(steps, data, _HEADER.size, count)
    _fill(times, data, _HEADER.size + 8 * count, count)
    _fill(values, data, _HEADER.size + 16 * count, count)
    return WirePoints(steps, times, values, cursor)


def _fill(column: array[Any], data: bytes, begin: int, count: int) -> None:
    column.frombytes(memoryview(data)[begin : begin + 8 * count])
    if sys.byteorder == "big":
        column.byteswap()
