"""Finds and verifies the records of a TensorBoard event file, many at a time."""

from __future__ import annotations

import struct
from typing import Optional

import numpy as np
import numpy.typing as npt

from runyard.wire.event_records import MASK, TABLE

_LENGTH = struct.Struct("<Q")
_HEAD, TAIL_BYTES = 12, 4  # length and its checksum before the content, checksum of the content after it
_MAX_LENGTH = 1 << 30
_MAX_VERIFIED = 1 << 16  # larger records are images and graphs, which are not read; their checksums are expensive
_TABLE = np.array(TABLE, np.uint32)

Bytes = npt.NDArray[np.uint8]


def complete_records(data: bytes) -> tuple[list[tuple[int, int]], Optional[int]]:
    """The (start, end) of the content of each complete record, and the position of damaged data, if any.

    An incomplete record at the end is not damaged: it is being written.
    """
    spans, damaged_at = _split(data)
    array = np.frombuffer(data, np.uint8)
    starts = np.array([begin for begin, _ in spans], np.intp)
    lengths = np.array([end - begin for begin, end in spans], np.intp)
    bad = _mismatches(array, starts - _HEAD, np.full(len(spans), 8, np.intp))
    bad |= _mismatches(array, starts, lengths)
    if bad.any():
        first = int(np.argmax(bad))
        return spans[:first], spans[first][0] - _HEAD
    return spans, damaged_at


def first_record_bytes(data: bytes) -> int:
    """The size of the first record with its checksums, according to its valid head."""
    return int(_LENGTH.unpack_from(data)[0]) + _HEAD + TAIL_BYTES


def _split(data: bytes) -> tuple[list[tuple[int, int]], Optional[int]]:
    """Split by the lengths alone, up to an invalid length."""
    spans: list[tuple[int, int]] = []
    position, size = 0, len(data)
    while position + _HEAD <= size:
        (length,) = _LENGTH.unpack_from(data, position)
        begin = position + _HEAD
        end = begin + length
        if end + TAIL_BYTES > size:
            # incomplete, unless the length itself is wrong: then the rest would never arrive
            head = np.frombuffer(data, np.uint8, 8, position)[None, :]
            is_valid = int(_checksums(head)[0]) == int.from_bytes(data[position + 8 : begin], "little")
            return spans, None if is_valid and length <= _MAX_LENGTH else position
        spans.append((begin, end))
        position = end + TAIL_BYTES
    return spans, None


def _mismatches(array: Bytes, starts: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """True for each span whose checksum is wrong; spans of equal length are verified together."""
    bad = np.zeros(len(starts), bool)
    for length in np.unique(lengths):
        if length > _MAX_VERIFIED:
            continue
        selected = np.flatnonzero(lengths == length)
        rows = array[starts[selected][:, None] + np.arange(length + TAIL_BYTES)]
        expected = np.ascontiguousarray(rows[:, length:]).view("<u4")[:, 0]
        bad[selected] = _checksums(rows[:, :length]) != expected
    return bad


def _checksums(rows: Bytes) -> npt.NDArray[np.uint32]:
    """The masked CRC-32C of each row."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in range(rows.shape[1]):
        crc = _TABLE[(crc ^ rows[:, column]) & 0xFF] ^ (crc >> np.uint32(8))
    crc ^= np.uint32(0xFFFFFFFF)
    masked: npt.NDArray[np.uint32] = (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(MASK)
    return masked
