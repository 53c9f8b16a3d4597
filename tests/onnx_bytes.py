"""ONNX models written byte by byte: small ones, for tests that need no exporter."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def linear(weights: Sequence[Sequence[float]]) -> bytes:
    """y = x · weights, for any number of rows."""
    rows, columns = len(weights), len(weights[0])
    values = b"".join(struct.pack("<f", value) for row in weights for value in row)
    tensor = _number(1, rows) + _number(1, columns) + _number(2, 1) + _bytes(8, b"w") + _bytes(9, values)
    node = _bytes(1, b"x") + _bytes(1, b"w") + _bytes(2, b"y") + _bytes(4, b"MatMul")
    graph = _bytes(1, node) + _bytes(2, b"g") + _bytes(5, tensor)
    graph += _bytes(11, _value(b"x", rows)) + _bytes(12, _value(b"y", columns))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13))


def _value(name: bytes, columns: int) -> bytes:
    shape = _bytes(1, _bytes(2, b"n")) + _bytes(1, _number(1, columns))
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, 1) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
