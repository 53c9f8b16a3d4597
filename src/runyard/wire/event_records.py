"""TensorBoard's event files, byte for byte: records with checksums, around small protocol buffers.

Both sides need it: the yard reads what scripts write for TensorBoard, and the SDK writes metrics for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Union

_LENGTH = struct.Struct("<Q")
_CHECK = struct.Struct("<I")
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, Union[int, bytes]]  # number, wire type, value; fixed ones as the bytes that they are


def is_event_file(name: str) -> bool:
    """As TensorBoard tells them."""
    return "tfevents" in name.rpartition("/")[2]


def record(data: bytes) -> bytes:
    head = _LENGTH.pack(len(data))
    return b"".join((head, _CHECK.pack(_masked(head)), data, _CHECK.pack(_masked(data))))


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a protocol buffer; ValueError when it is none."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + size > len(message):
            raise ValueError("cut short")
        yield number, kind, message[at : at + size]
        at += size


def field(number: int, kind: int, value: int | bytes) -> bytes:
    """One field of a protocol buffer; fixed ones are given as their bytes."""
    tag = _as_varint(number << 3 | kind)
    if isinstance(value, int):
        return tag + _as_varint(value)
    return tag + (_as_varint(len(value)) if kind == BYTES else b"") + value


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("cut short")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _as_varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers take ten bytes, as everywhere
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> list[int]:
    found = []
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
        found.append(rest)
    return found


TABLE, MASK = _table(), 0xA282EAD8


def _masked(data: bytes) -> int:
    """CRC-32C, turned and shifted, so that a checksum of data with checksums in it is none of them."""
    rest, table = 0xFFFFFFFF, TABLE
    for byte in data:
        rest = table[(rest ^ byte) & 0xFF] ^ rest >> 8
    rest ^= 0xFFFFFFFF
    return ((rest >> 15 | rest << 17) + MASK) & 0xFFFFFFFF
