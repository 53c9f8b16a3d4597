"""Writes small ONNX models byte by byte, without an exporter."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]


def perceptron(*layers: Matrix) -> bytes:
    """Return a multilayer perceptron with ReLU between the layers, for any number of rows."""
    nodes, tensors, value = b"", b"", b"x"
    for number, layer in enumerate(layers):
        weights, last = b"w%d" % number, number == len(layers) - 1
        tensors += _bytes(5, _tensor(weights, layer))
        output = b"y" if last else b"a%d" % number
        nodes += _bytes(1, _bytes(1, value) + _bytes(1, weights) + _bytes(2, output) + _bytes(4, b"MatMul"))
        if not last:
            nodes += _bytes(1, _bytes(1, output) + _bytes(2, b"r%d" % number) + _bytes(4, b"Relu"))
            output = b"r%d" % number
        value = output
    graph = nodes + _bytes(2, b"perceptron") + tensors
    graph += _bytes(11, _value(b"x", len(layers[0]))) + _bytes(12, _value(b"y", len(layers[-1][0])))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13))


def _tensor(name: bytes, rows: Matrix) -> bytes:
    values = b"".join(struct.pack("<f", value) for row in rows for value in row)
    return _number(1, len(rows)) + _number(1, len(rows[0])) + _number(2, 1) + _bytes(8, name) + _bytes(9, values)


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
