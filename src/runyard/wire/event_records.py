"""TensorBoard's event file format: records with checksums, each containing a small protocol buffer.

Shared because the yard reads event files that scripts write, and the SDK writes metrics as event files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Union

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, Union[int, bytes]]  # number, wire type, value; raw bytes for fixed-size types


def is_event_file(name: str) -> bool:
    """Use TensorBoard's own criterion."""
    return "tfevents" in name.rpartition("/")[2]


def record(data: bytes) -> bytes:
    length = _LENGTH.pack(len(data))
    return b"".join((length, _CHECKSUM.pack(_masked_crc32c(length)), data, _CHECKSUM.pack(_masked_crc32c(data))))


def fields(message: bytes) -> Iterator[Field]:
    """Iterate over the fields of a protocol buffer. Raises ValueError if the message is malformed."""
    offset = 0
    while offset < len(message):
        tag, offset = _decode_varint(message, offset)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, offset = _decode_varint(message, offset)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, offset = _decode_varint(message, offset)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {kind}")
        if offset + size > len(message):
            raise ValueError("truncated message")
        yield number, kind, message[offset : offset + size]
        offset += size


def field(number: int, kind: int, value: int | bytes) -> bytes:
    """Encode one field of a protocol buffer; pass values of fixed-size types as bytes."""
    tag = _encode_varint(number << 3 | kind)
    if isinstance(value, int):
        return tag + _encode_varint(value)
    return tag + (_encode_varint(len(value)) if kind == BYTES else b"") + value


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _decode_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if offset >= len(data) or shift > 63:
            raise ValueError("truncated message")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7


def _encode_varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # protocol buffers encode negative numbers in ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _crc32c_table() -> list[int]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


TABLE, MASK = _crc32c_table(), 0xA282EAD8


def _masked_crc32c(data: bytes) -> int:
    """The record format rotates and offsets its checksums, because a CRC of data that contains CRCs is weak."""
    crc, table = 0xFFFFFFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF
