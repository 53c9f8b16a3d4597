"""The records of an event file in a stretch of bytes: whole ones, checked many at a time."""

from __future__ import annotations

import struct
from typing import Optional

import numpy as np
import numpy.typing as npt

from runyard.wire.event_records import MASK, TABLE

_LENGTH = struct.Struct("<Q")
_HEAD, TAIL_BYTES = 12, 4  # length and its checksum before the content, the content's checksum after it
_LARGEST = 1 << 30
_CHECKED = 1 << 16  # larger ones are images and graphs, which nobody reads here: their sums would take longest
_TABLE = np.array(TABLE, np.uint32)

Bytes = npt.NDArray[np.uint8]


def whole_records(data: bytes) -> tuple[list[tuple[int, int]], Optional[int]]:
    """Where the content of each whole record begins and ends, and where the data is damaged, if it is.

    A record at the end that is only half there is no damage: it is being written.
    """
    spans, broken = _walk(data)
    array = np.frombuffer(data, np.uint8)
    starts = np.array([begin for begin, _ in spans], np.intp)
    lengths = np.array([end - begin for begin, end in spans], np.intp)
    bad = _mismatches(array, starts - _HEAD, np.full(len(spans), 8, np.intp))
    bad |= _mismatches(array, starts, lengths)
    if bad.any():
        first = int(np.argmax(bad))
        return spans[:first], spans[first][0] - _HEAD
    return spans, broken


def _walk(data: bytes) -> tuple[list[tuple[int, int]], Optional[int]]:
    """By the lengths alone; a length that is nonsense ends it."""
    spans: list[tuple[int, int]] = []
    at, size = 0, len(data)
    while at + _HEAD <= size:
        (length,) = _LENGTH.unpack_from(data, at)
        begin = at + _HEAD
        end = begin + length
        if end + TAIL_BYTES > size:
            # cut short, unless the length itself is wrong: then what is waited for would never come
            head = np.frombuffer(data, np.uint8, 8, at)[None, :]
            right = int(_masked(head)[0]) == int.from_bytes(data[at + 8 : begin], "little")
            return spans, None if right and length <= _LARGEST else at
        spans.append((begin, end))
        at = end + TAIL_BYTES
    return spans, None


def _mismatches(array: Bytes, starts: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Which stretches do not have the checksum that follows them; those of one length are summed up together."""
    bad = np.zeros(len(starts), bool)
    for length in np.unique(lengths):
        if length > _CHECKED:
            continue
        chosen = np.flatnonzero(lengths == length)
        rows = array[starts[chosen][:, None] + np.arange(length + TAIL_BYTES)]
        said = np.ascontiguousarray(rows[:, length:]).view("<u4")[:, 0]
        bad[chosen] = _masked(rows[:, :length]) != said
    return bad


def _masked(rows: Bytes) -> npt.NDArray[np.uint32]:
    rest = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in range(rows.shape[1]):
        rest = _TABLE[(rest ^ rows[:, column]) & 0xFF] ^ (rest >> np.uint32(8))
    rest ^= np.uint32(0xFFFFFFFF)
    masked: npt.NDArray[np.uint32] = (rest >> np.uint32(15) | rest << np.uint32(17)) + np.uint32(MASK)
    return masked
