"""Reads the offline runs of W&B: `run-….wandb`, a log of records in blocks that contain small protocol buffers."""

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
    ForeignRun,
    MetricSeries,
    add_point,
    list_files,
    new_series,
    stable_id,
)
from runyard.wire.event_records import fields, signed

_MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32768
_HEAD = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_DOUBLE = struct.Struct("<d")

# field numbers of W&B's records
_HISTORY, _SUMMARY, _CONFIG, _RUN, _EXIT, _ENVIRONMENT = 2, 3, 5, 17, 18, 26
Value = Union[int, bytes]


def runs(root: Path) -> Iterator[ForeignRun]:
    paths = [root] if root.is_file() else sorted(root.rglob("run-*.wandb"))
    if not paths:
        raise UserErrorException(f"no run-….wandb at or below {root}", hint="pass the folder `wandb` of your project")
    for path in paths:
        metadata = _read(path)
        if metadata.run_id:
            yield _run(path, metadata)


@dataclass
class _Metadata:
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


def _run(path: Path, metadata: _Metadata) -> ForeignRun:
    tags = {"wandb.id": metadata.run_id}
    for key in ("group", "job_type", "notes", "host"):
        if value := getattr(metadata, key):
            tags[f"wandb.{key}"] = value
    tags.update(dict.fromkeys(metadata.labels, ""))
    status = NOT_ENDED if metadata.exit_code is None else COMPLETED if metadata.exit_code == 0 else FAILED
    return ForeignRun(
        run_id=stable_id("wandb", metadata.project or "uncategorized", metadata.run_id),
        experiment=metadata.project or "uncategorized",
        name=metadata.name or metadata.run_id,
        status=status,
        created_at=metadata.started_at,
        ended_at=max(metadata.last_at, metadata.started_at) if metadata.exit_code is not None else None,
        source="wandb",
        series=lambda: _read_series(path, metadata.started_at),
        user=metadata.user,
        message=f"exit code {metadata.exit_code}" if metadata.exit_code else "",
        tags=tags,
        params=dict(_params("", metadata.config)),
        files=list_files(path.parent / "files"),
    )


def _params(prefix: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield parameters; the names of nested ones are joined with dots, as in W&B."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _params(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value)


def _read(path: Path) -> _Metadata:
    metadata = _Metadata()
    for number, message in _records(path):
        if number == _RUN:
            _read_run(metadata, message)
        elif number == _CONFIG:
            _read_config(metadata, message)
        elif number == _EXIT:
            metadata.exit_code = next((signed(int(value)) for n, value in _fields(message) if n == 1), 0)
        elif number == _ENVIRONMENT:
            metadata.user = metadata.user or next((_text(value) for n, value in _fields(message) if n == 13), "")
        elif number == _HISTORY:
            metadata.last_at = _history(message)[1].get("_timestamp", metadata.last_at)
    return metadata


def _read_run(metadata: _Metadata, message: bytes) -> None:
    """Read a run record. It is written again when the script changes the run."""
    texts = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes", 13: "host"}
    labels = []
    for number, value in _fields(message):
        if number in texts:
            setattr(metadata, texts[number], _text(value))
        elif number == 10:
            labels.append(_text(value))
        elif number == 4:
            _read_config(metadata, _bytes(value))
        elif number == 17:
            parts = {n: int(v) for n, v in _fields(_bytes(value))}
            metadata.started_at = parts.get(1, 0) + parts.get(2, 0) / 1e9
    metadata.labels = labels or metadata.labels


def _read_config(metadata: _Metadata, message: bytes) -> None:
    for number, value in _fields(message):
        key, content = _item(_bytes(value))
        if key.startswith("_wandb"):
            continue
        if number == 1:
            metadata.config[key] = content
        elif number == 2:
            metadata.config.pop(key, None)


def _read_series(path: Path, started_at: float) -> Iterator[MetricSeries]:
    """Read the history: each row contains several values with a common step and time."""
    by_name: dict[str, MetricSeries] = {}
    for number, message in _records(path):
        if number != _HISTORY:
            continue
        step, values = _history(message)
        time = values.get("_timestamp", started_at)
        for key, value in values.items():
            if not key.startswith("_"):
                add_point(by_name.setdefault(key, new_series(key)), step, time, value)
    yield from by_name.values()


def _history(message: bytes) -> tuple[int, dict[str, float]]:
    step = 0
    values: dict[str, float] = {}
    for number, value in _fields(message):
        if number == 2:
            step = next((signed(int(v)) for n, v in _fields(_bytes(value)) if n == 1), 0)
        elif number == 1:
            key, content = _item(_bytes(value))
            if key == "_step" and isinstance(content, (int, float)):
                step = int(content)
            values.update(_flatten(key, content))
    return step, values


def _flatten(key: str, content: Any) -> Iterator[tuple[str, float]]:
    """Yield numbers, also from nested dicts; other values (images, tables) are among the files."""
    if isinstance(content, (bool, int, float)) or content in ("NaN", "Infinity", "-Infinity"):
        yield key, float(content)
    elif isinstance(content, dict) and "_type" not in content:
        for part, inner in content.items():
            yield from _flatten(f"{key}.{part}", inner)


def _item(message: bytes) -> tuple[str, Any]:
    """Return the key, or the parts of a nested one, and the value: JSON, or a typed field in newer versions."""
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
    """Yield the type of each record and its message."""
    for data in _read_log(path):
        for number, value in _fields(data):
            if isinstance(value, bytes) and number != 19:
                yield number, value


def _read_log(path: Path) -> Iterator[bytes]:
    """Yield complete records, which may be split at the ends of blocks. An incomplete last record is ignored."""
    data = path.read_bytes()
    if data[: len(_MAGIC)] != _MAGIC:
        raise UserErrorException(
            f"{path} is not a supported W&B file", hint="it should start with ':W&B' and version 0"
        )
    position, record = len(_MAGIC), b""
    while position + _HEAD.size <= len(data):
        remaining = _BLOCK - position % _BLOCK
        if remaining < _HEAD.size:
            position += remaining
            continue
        checksum, length, kind = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        piece = data[position : position + length]
        position += length
        if kind == 0 or len(piece) < length:
            return
        if zlib.crc32(bytes([kind]) + piece) != checksum:
            raise UserErrorException(
                f"{path} is damaged at byte {position - length:,}", hint="move it away and import the rest"
            )
        record = piece if kind in (_FULL, _FIRST) else record + piece
        if kind in (_FULL, _LAST):
            yield record


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    for number, _, value in fields(message):
        yield number, value


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
