"""Parses TensorBoard events: scalars, histograms, texts and hyperparameters, in the formats of TensorFlow 1 and 2."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from runyard.context.documents import HISTOGRAM, SCALAR, TEXT
from runyard.event_files import hparams
from runyard.wire.event_records import BYTES, FIXED32, fields, signed

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
# TensorFlow's type numbers and the corresponding numpy types
_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2", 22: "<u4", 23: "<u8"}
_STRING, _BFLOAT16, _HALF = 7, 14, 19
_FIXED_WIDTH = {5: "<f4", 6: "<f8"}  # fields with values of fixed width; the others are varints
_VARINTS = (7, 10, 11, 13, 16, 17)


@dataclass(frozen=True)
class SummaryValue:
    tag: str
    kind: str  # scalar, histogram or text, or a kind of runyard.event_files.hparams
    step: int
    time: float
    value: Any


def read_event(event: bytes) -> Iterator[SummaryValue]:
    """Yield the values of an event; none for versions, graphs, images and audio. Raises ValueError for other data."""
    scalar = _parse_simple_scalar(event)
    if scalar is not None:
        yield scalar
        return
    time, step, summary = 0.0, 0, b""
    for number, kind, value in fields(event):
        if number == 1 and isinstance(value, bytes):
            (time,) = _DOUBLE.unpack(value)
        elif number == 2 and isinstance(value, int):
            step = signed(value)
        elif number == 5 and kind == BYTES and isinstance(value, bytes):
            summary = value
    for number, _, value in fields(summary):
        if number == 1 and isinstance(value, bytes):
            parsed = _parse_value(value, step, time)
            if parsed is not None:
                yield parsed


def _parse_simple_scalar(event: bytes) -> Optional[SummaryValue]:
    """Parse the most common event, one scalar, without a generic parser; None for any other event.

    It consists of time, step, summary, value, tag and number, each after its field byte, and nothing else.
    """
    size = len(event)
    if not 24 <= size < 250 or event[0] != 0x09:
        return None
    step, pos = 0, 9
    if event[pos] == 0x10:
        shift, pos = 0, pos + 1
        while event[pos] > 0x7F and shift < 63:
            step |= (event[pos] & 0x7F) << shift
            shift, pos = shift + 7, pos + 1
            if pos == size:
                return None
        step |= event[pos] << shift
        pos += 1
    tag = pos + 6
    if tag >= size or event[pos] != 0x2A or event[pos + 2] != 0x0A or event[pos + 4] != 0x0A:
        return None
    number = tag + event[pos + 5]
    is_complete = event[pos + 1] == size - pos - 2 < 128 and event[pos + 3] == size - pos - 4 and number + 5 == size
    if not is_complete or event[number] != 0x15:
        return None
    value = _FLOAT.unpack_from(event, number + 1)[0]
    return SummaryValue(
        event[tag:number].decode("utf-8", "replace"), SCALAR, signed(step), _DOUBLE.unpack_from(event, 1)[0], value
    )


def _parse_value(message: bytes, step: int, time: float) -> Optional[SummaryValue]:
    tag = plugin = ""
    plugin_data = b""
    kind, content = "", None
    for number, wire, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and wire == FIXED32:
            kind, content = SCALAR, _FLOAT.unpack(value)[0]
        elif number == 5:
            kind, content = HISTOGRAM, _histogram_v1(value)
        elif number == 8:
            kind, content = "tensor", value
        elif number == 9:
            plugin, plugin_data = _plugin(value)
    if plugin == hparams.PLUGIN:
        kind, content = hparams.parse_session(plugin_data)
    elif kind == "tensor" and isinstance(content, bytes):
        kind, content = _parse_tensor(content, plugin)
    return SummaryValue(tag, kind, step, time, content) if tag and kind else None


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """The name of the plugin and its data."""
    name, data = "", b""
    for number, _, value in fields(metadata):
        if number == 1 and isinstance(value, bytes):
            for inner, _, content in fields(value):
                if inner == 1 and isinstance(content, bytes):
                    name = content.decode("utf-8", "replace")
                elif inner == 2 and isinstance(content, bytes):
                    data = content
    return name, data


def _parse_tensor(message: bytes, plugin: str) -> tuple[str, Any]:
    """Parse a tensor. A file names the plugin only in the first event of a tag; later ones depend on type and shape."""
    kind = 0
    shape: list[int] = []
    raw = b""
    strings: list[bytes] = []
    numbers_in_fields: list[float] = []
    for number, wire, value in fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2 and isinstance(value, bytes):
            shape = _shape(value)
        elif number == 4 and isinstance(value, bytes):
            raw = value
        elif number == 8 and isinstance(value, bytes):
            strings.append(value)
        elif number in _FIXED_WIDTH and isinstance(value, bytes):
            numbers_in_fields += np.frombuffer(value, _FIXED_WIDTH[number]).tolist()
        elif number in _VARINTS:
            packed = value if wire == BYTES and isinstance(value, bytes) else None
            numbers_in_fields += [_integer(value)] if packed is None else _varints(packed)
    if kind == _STRING:
        if plugin not in ("", "text"):
            return "", None  # images and audio are lists of encoded files
        text = "\n".join(part.decode("utf-8", "replace") for part in strings)
        return TEXT, text
    numbers = _numbers(kind, raw, numbers_in_fields)
    if numbers is None:
        return "", None
    if plugin in ("", "scalars") and numbers.size == 1:
        return SCALAR, float(numbers[0])
    if plugin in ("", "histograms") and len(shape) == 2 and shape[1] == 3:
        return HISTOGRAM, _histogram_v2(numbers.reshape(-1, 3))
    return "", None


def _numbers(kind: int, raw: bytes, values: list[float]) -> Optional[npt.NDArray[np.float64]]:
    if kind == _BFLOAT16:
        bits = np.frombuffer(raw, "<u2") if raw else np.array(values, "<u2")
        return (bits.astype("<u4") << 16).view("<f4").astype(float)
    if kind == _HALF and not raw:
        return np.array(values, "<u2").view("<f2").astype(float)
    if kind not in _TYPES:
        return None
    return np.frombuffer(raw, _TYPES[kind]).astype(float) if raw else np.array(values, float)


def _shape(message: bytes) -> list[int]:
    sizes = []
    for number, _, value in fields(message):
        if number == 2 and isinstance(value, bytes):
            sizes.append(next((signed(size) for n, _, size in fields(value) if n == 1 and isinstance(size, int)), 0))
    return sizes


def _varints(packed: bytes) -> list[float]:
    numbers, value, shift = [], 0, 0
    for byte in packed:
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(_integer(value))
            value = shift = 0
    return numbers


def _integer(value: int | bytes) -> float:
    return float(signed(value)) if isinstance(value, int) else 0.0


def _histogram_v1(message: bytes) -> dict[str, list[float]]:
    """Histogram of TensorFlow 1, also written by torch: buckets by upper limits, the outermost ones are infinite."""
    low = high = 0.0
    limits: list[float] = []
    counts: list[float] = []
    for number, _, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            (low,) = _DOUBLE.unpack(value)
        elif number == 2:
            (high,) = _DOUBLE.unpack(value)
        elif number == 6:
            limits += np.frombuffer(value, "<f8").tolist()
        elif number == 7:
            counts += np.frombuffer(value, "<f8").tolist()
    filled = [index for index, count in enumerate(counts[: len(limits)]) if count]
    if not filled:
        return {"bin_edges": [low, max(low, high)], "bin_counts": [0.0]}
    first, last = filled[0], filled[-1]
    edges = [limits[first - 1] if first else low, *limits[first : last + 1]]
    edges[0], edges[-1] = max(edges[0], min(low, edges[1])), max(edges[-2], min(edges[-1], high))
    return {"bin_edges": edges, "bin_counts": counts[first : last + 1]}


def _histogram_v2(buckets: npt.NDArray[np.float64]) -> dict[str, list[float]]:
    """Histogram of TensorFlow 2: rows of left edge, right edge and count."""
    if not len(buckets):
        return {"bin_edges": [0.0, 1.0], "bin_counts": [0.0]}
    edges = np.maximum.accumulate(np.append(buckets[:, 0], buckets[-1, 1]))
    return {"bin_edges": edges.tolist(), "bin_counts": buckets[:, 2].tolist()}
