"""What W&B writes when it is offline: `run-….wandb`, a log of records in blocks, around small protocol buffers."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import (
    COMPLETED,
    FAILED,
    NOT_ENDED,
    Curve,
    FoundRun,
    add,
    an_id,
    files_below,
    new_curve,
)
from runyard.wire.event_records import fields, signed

_START = b":W&B\xe1\xbe\x00"
_BLOCK = 32768
_HEAD = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_DOUBLE = struct.Struct("<d")

# numbers of fields in W&B's records
_HISTORY, _SUMMARY, _CONFIG, _RUN, _EXIT, _ENVIRONMENT = 2, 3, 5, 17, 18, 26
Value = Union[int, bytes]


def runs(root: Path) -> Iterator[FoundRun]:
    paths = [root] if root.is_file() else sorted(root.rglob("run-*.wandb"))
    if not paths:
        raise UserErrorException(
            f"there is no run-….wandb at or below {root}", hint="give the folder `wandb` of your project"
        )
    for path in paths:
        told = _read(path)
        if told.run_id:
            yield _run(path, told)


@dataclass
class _Told:
    run_id: str = ""
    project: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    notes: str = ""
    user: str = ""
    host: str = ""
    labels: list[str] = field(default_factory=list)
    started_at: float = 0.0
    config: dict[str, Any] = field(default_factory=dict)
    exit_code: Optional[int] = None
    last_at: float = 0.0


def _run(path: Path, told: _Told) -> FoundRun:
    tags = {"wandb.id": told.run_id}
    for key, value in (("group", told.group), ("job_type", told.job_type), ("notes", told.notes), ("host", told.host)):
        if value:
            tags[f"wandb.{key}"] = value
    tags.update(dict.fromkeys(told.labels, ""))
    status = NOT_ENDED if told.exit_code is None else COMPLETED if told.exit_code == 0 else FAILED
    return FoundRun(
        run_id=an_id("wandb", told.project or "uncategorized", told.run_id),
        experiment=told.project or "uncategorized",
        name=told.name or told.run_id,
        status=status,
        created_at=told.started_at,
        ended_at=max(told.last_at, told.started_at) if told.exit_code is not None else None,
        source="wandb",
        curves=lambda: _curves(path, told.started_at),
        user=told.user,
        message=f"exit code {told.exit_code}" if told.exit_code else "",
        tags=tags,
        params=dict(_params("", told.config)),
        files=files_below(path.parent / "files"),
    )


def _params(prefix: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Nested ones by their parts, as W&B shows them."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _params(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value)


def _read(path: Path) -> _Told:
    told = _Told()
    for number, message in _records(path):
        if number == _RUN:
            _read_run(told, message)
        elif number == _CONFIG:
            _read_config(told, message)
        elif number == _EXIT:
            told.exit_code = next((signed(int(value)) for n, value in _fields(message) if n == 1), 0)
        elif number == _ENVIRONMENT:
            told.user = told.user or next((_text(value) for n, value in _fields(message) if n == 13), "")
        elif number == _HISTORY:
            told.last_at = _history(message)[1].get("_timestamp", told.last_at)
    return told


def _read_run(told: _Told, message: bytes) -> None:
    """It may come again, when the script changes something about its run."""
    texts = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes", 13: "host"}
    labels = []
    for number, value in _fields(message):
        if number in texts:
            setattr(told, texts[number], _text(value))
        elif number == 10:
            labels.append(_text(value))
        elif number == 4:
            _read_config(told, _bytes(value))
        elif number == 17:
            parts = {n: int(v) for n, v in _fields(_bytes(value))}
            told.started_at = parts.get(1, 0) + parts.get(2, 0) / 1e9
    told.labels = labels or told.labels


def _read_config(told: _Told, message: bytes) -> None:
    for number, value in _fields(message):
        key, content = _item(_bytes(value))
        if key.startswith("_wandb"):
            continue
        if number == 1:
            told.config[key] = content
        elif number == 2:
            told.config.pop(key, None)


def _curves(path: Path, started_at: float) -> Iterator[Curve]:
    """A row of the history has many values, one step and one time."""
    curves: dict[str, Curve] = {}
    for number, message in _records(path):
        if number != _HISTORY:
            continue
        step, values = _history(message)
        at = values.get("_timestamp", started_at)
        for key, value in values.items():
            if not key.startswith("_"):
                add(curves.setdefault(key, new_curve(key)), step, at, value)
    yield from curves.values()


def _history(message: bytes) -> tuple[int, dict[str, float]]:
    step, values = 0, {}
    for number, value in _fields(message):
        if number == 2:
            step = next((signed(int(v)) for n, v in _fields(_bytes(value)) if n == 1), 0)
        elif number == 1:
            key, content = _item(_bytes(value))
            if key == "_step" and isinstance(content, (int, float)):
                step = int(content)
            for name, plain in _flat(key, content):
                values[name] = plain
    return step, values


def _flat(key: str, content: Any) -> Iterator[tuple[str, float]]:
    """Dicts are told by their parts; what is no number (an image, a table) is among the files."""
    if isinstance(content, (bool, int, float)) or content in ("NaN", "Infinity", "-Infinity"):
        yield key, float(content)
    elif isinstance(content, dict) and "_type" not in content:
        for part, inner in content.items():
            yield from _flat(f"{key}.{part}", inner)


def _item(message: bytes) -> tuple[str, Any]:
    """A key, or the parts of a nested one, and a value: as JSON, or in newer versions as what it is."""
    key, nested, content = "", [], None
    for number, value in _fields(message):
        if number == 1:
            key = _text(value)
        elif number == 2:
            nested.append(_text(value))
        elif number in (8, 16):
            content = _json(_text(value))
        elif number == 4:
            content = bool(value)
        elif number == 5:
            zigzag = int(value)
            content = zigzag >> 1 ^ -(zigzag & 1)
        elif number == 6:
            (content,) = _DOUBLE.unpack(_bytes(value))
        elif number == 7:
            content = _text(value)
    return key or ".".join(nested), content


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return math.nan if text == "NaN" else None


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """The kind of each record and its message."""
    for data in _logged(path):
        for number, value in _fields(data):
            if isinstance(value, bytes) and number != 19:
                yield number, value


def _logged(path: Path) -> Iterator[bytes]:
    """Records may be cut in pieces at the ends of blocks. A last one that is only half there was never finished."""
    data = path.read_bytes()
    if data[: len(_START)] != _START:
        raise UserErrorException(
            f"{path} is no file of W&B's that is known here", hint="it should begin with ':W&B' and version 0"
        )
    at, pieces = len(_START), b""
    while at + _HEAD.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEAD.size:
            at += left
            continue
        check, length, kind = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        piece = data[at : at + length]
        at += length
        if kind == 0 or len(piece) < length:
            return
        if zlib.crc32(bytes([kind]) + piece) != check:
            raise UserErrorException(
                f"{path} is damaged at byte {at - length:,}", hint="move it away, and import the rest"
            )
        pieces = piece if kind in (_FULL, _FIRST) else pieces + piece
        if kind in (_FULL, _LAST):
            yield pieces


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    for number, _, value in fields(message):
        yield number, value


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
