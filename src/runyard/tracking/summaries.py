"""What an event of TensorBoard says: scalars, histograms and texts, in the forms of TensorFlow 1 and 2."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from runyard.context.documents import HISTOGRAM, TEXT
from runyard.tracking.series import SCALAR
from runyard.wire.event_records import BYTES, FIXED32, fields, signed

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
# TensorFlow's numbers of its types, and the field of a tensor that holds values of each
_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2", 22: "<u4", 23: "<u8"}
_STRING, _BFLOAT16, _HALF = 7, 14, 19
_LISTED = {5: "<f4", 6: "<f8"}  # fields of fixed width; the others are varints
_VARINTS = (7, 10, 11, 13, 16, 17)


@dataclass(frozen=True)
class Said:
    tag: str
    kind: str  # scalar, histogram or text
    step: int
    time: float
    value: Any


def read_event(event: bytes) -> Iterator[Said]:
    """Nothing for events of other kinds: versions, graphs, images, sound. ValueError when it is no event."""
    scalar = _usual(event)
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
            said = _value(value, step, time)
            if said is not None:
                yield said


def _usual(event: bytes) -> Optional[Said]:
    """One scalar in the short form, which nearly all events are: read at a glance, or None to read it field by field.

    Time, step, summary, value, tag, number: each behind its own byte, and nothing else.
    """
    size = len(event)
    if not 24 <= size < 250 or event[0] != 0x09:
        return None
    step, at = 0, 9
    if event[at] == 0x10:
        shift, at = 0, at + 1
        while event[at] > 0x7F and shift < 63:
            step |= (event[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if at == size:
                return None
        step |= event[at] << shift
        at += 1
    tag = at + 6
    if tag >= size or event[at] != 0x2A or event[at + 2] != 0x0A or event[at + 4] != 0x0A:
        return None
    number = tag + event[at + 5]
    fits = event[at + 1] == size - at - 2 < 128 and event[at + 3] == size - at - 4 and number + 5 == size
    if not fits or event[number] != 0x15:
        return None
    value = _FLOAT.unpack_from(event, number + 1)[0]
    return Said(
        event[tag:number].decode("utf-8", "replace"), SCALAR, signed(step), _DOUBLE.unpack_from(event, 1)[0], value
    )


def _value(message: bytes, step: int, time: float) -> Optional[Said]:
    tag = plugin = ""
    kind, content = "", None
    for number, wire, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and wire == FIXED32:
            kind, content = SCALAR, _FLOAT.unpack(value)[0]
        elif number == 5:
            kind, content = HISTOGRAM, _old_histogram(value)
        elif number == 8:
            kind, content = "tensor", value
        elif number == 9:
            plugin = _plugin(value)
    if kind == "tensor" and isinstance(content, bytes):
        kind, content = _tensor(content, plugin)
    return Said(tag, kind, step, time, content) if tag and kind else None


def _plugin(metadata: bytes) -> str:
    for number, _, value in fields(metadata):
        if number == 1 and isinstance(value, bytes):
            for inner, _, name in fields(value):
                if inner == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", "replace")
    return ""


def _tensor(message: bytes, plugin: str) -> tuple[str, Any]:
    """A file names the plugin only where a tag comes first; later ones are told by type and shape."""
    kind = 0
    shape: list[int] = []
    raw = b""
    strings: list[bytes] = []
    listed: list[float] = []
    for number, wire, value in fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2 and isinstance(value, bytes):
            shape = _shape(value)
        elif number == 4 and isinstance(value, bytes):
            raw = value
        elif number == 8 and isinstance(value, bytes):
            strings.append(value)
        elif number in _LISTED and isinstance(value, bytes):
            listed += np.frombuffer(value, _LISTED[number]).tolist()
        elif number in _VARINTS:
            listed += _varints(value) if wire == BYTES and isinstance(value, bytes) else [_whole(value)]
    if kind == _STRING:
        if plugin not in ("", "text"):
            return "", None  # images and sound are lists of encoded files
        text = "\n".join(part.decode("utf-8", "replace") for part in strings)
        return TEXT, text
    numbers = _numbers(kind, raw, listed)
    if numbers is None:
        return "", None
    if plugin in ("", "scalars") and numbers.size == 1:
        return SCALAR, float(numbers[0])
    if plugin in ("", "histograms") and len(shape) == 2 and shape[1] == 3:
        return HISTOGRAM, _new_histogram(numbers.reshape(-1, 3))
    return "", None


def _numbers(kind: int, raw: bytes, listed: list[float]) -> Optional[npt.NDArray[np.float64]]:
    if kind == _BFLOAT16:
        bits = np.frombuffer(raw, "<u2") if raw else np.array(listed, "<u2")
        return (bits.astype("<u4") << 16).view("<f4").astype(float)
    if kind == _HALF and not raw:
        return np.array(listed, "<u2").view("<f2").astype(float)
    if kind not in _TYPES:
        return None
    return np.frombuffer(raw, _TYPES[kind]).astype(float) if raw else np.array(listed, float)


def _shape(message: bytes) -> list[int]:
    found = []
    for number, _, value in fields(message):
        if number == 2 and isinstance(value, bytes):
            found.append(next((signed(size) for n, _, size in fields(value) if n == 1 and isinstance(size, int)), 0))
    return found


def _varints(packed: bytes) -> list[float]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(_whole(value))
            value = shift = 0
    return found


def _whole(value: int | bytes) -> float:
    return float(signed(value)) if isinstance(value, int) else 0.0


def _old_histogram(message: bytes) -> dict[str, list[float]]:
    """The proto of TensorFlow 1, which torch writes: buckets by their upper limits, the outer ones endless."""
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


def _new_histogram(buckets: npt.NDArray[np.float64]) -> dict[str, list[float]]:
    """Of TensorFlow 2: rows of left edge, right edge and count."""
    if not len(buckets):
        return {"bin_edges": [0.0, 1.0], "bin_counts": [0.0]}
    edges = np.maximum.accumulate(np.append(buckets[:, 0], buckets[-1, 1]))
    return {"bin_edges": edges.tolist(), "bin_counts": buckets[:, 2].tolist()}
