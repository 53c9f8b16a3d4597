"""Interprets the records of W&B's log, which are small protocol buffers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from runyard.exchange.foreign_run import MetricSeries, add_point, new_series
from runyard.wire.event_records import fields, signed
from runyard.wire.points import NO_STEP

_DOUBLE = struct.Struct("<d")
# field numbers of W&B's records
_HISTORY, _SUMMARY, _CONFIG, _FILES, _ARTIFACT, _RUN, _EXIT, _ENVIRONMENT = 2, 3, 5, 6, 8, 17, 18, 26
_USER_FILE = 0  # type of the files of `wandb.save`
_TABLE_ARTIFACTS = "run_table"  # W&B creates them for tables, which are also among the files
_MAX_NAME = 255

Value = Union[int, bytes]
Key = tuple[str, ...]


@dataclass(frozen=True)
class ArtifactFile:
    name: str  # in the run
    path: str  # W&B's copy on this machine
    md5: str  # in base 64


@dataclass
class RunRecords:
    """The content of a run's records so far. The decision about each record depends only on the records before it:
    a reader of a longer log gets the same points, and more."""

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
    saved_files: list[str] = field(default_factory=list)
    artifact_files: list[ArtifactFile] = field(default_factory=list)
    series: dict[str, MetricSeries] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)  # names in the history
    _versions: dict[str, int] = field(default_factory=dict)  # of artifacts, by name

    def add(self, record: bytes) -> None:
        """Add a record. Raises ValueError if it is not a protocol buffer."""
        for number, message in _fields(record):
            if not isinstance(message, bytes):
                continue
            if number == _HISTORY:
                self._add_history(message)
            elif number == _SUMMARY:
                self._add_summary(message)
            elif number == _RUN:
                self._add_run(message)
            elif number == _CONFIG:
                self._add_config(message)
            elif number == _FILES:
                self._add_files(message)
            elif number == _ARTIFACT:
                self._add_artifact(message)
            elif number == _EXIT:
                self.exit_code = next((signed(int(value)) for n, value in _fields(message) if n == 1), 0)
            elif number == _ENVIRONMENT:
                self.user = self.user or next((_text(value) for n, value in _fields(message) if n == 13), "")

    def forget_points(self) -> None:
        """Drop points that were sent; the next ones continue at their index."""
        for name, series in self.series.items():
            self.series[name] = new_series(name, series.start + len(series.values))

    def _add_run(self, message: bytes) -> None:
        """Read a run record. It is written again when the script changes the run, and by a process that resumes it."""
        self.exit_code = None  # a run that is resumed has not ended
        texts = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes", 13: "host"}
        labels = []
        for number, value in _fields(message):
            if number in texts:
                setattr(self, texts[number], _text(value))
            elif number == 10:
                labels.append(_text(value))
            elif number == 4:
                self._add_config(_bytes(value))
            elif number == 17 and not self.started_at:
                parts = {n: int(v) for n, v in _fields(_bytes(value))}
                self.started_at = parts.get(1, 0) + parts.get(2, 0) / 1e9
        self.labels = labels or self.labels

    def _add_config(self, message: bytes) -> None:
        for number, value in _fields(message):
            key, content = _item(_bytes(value))
            name = ".".join(key)
            if name.startswith("_wandb"):
                continue
            if number == 1:
                self.config[name] = content
            elif number == 2:
                self.config.pop(name, None)

    def _add_history(self, message: bytes) -> None:
        """Add a row: several values with a common step and time."""
        step = 0
        items: list[tuple[Key, Any]] = []
        for number, value in _fields(message):
            if number == 2:
                step = next((signed(int(v)) for n, v in _fields(_bytes(value)) if n == 1), 0)
            elif number == 1:
                items.append(_item(_bytes(value)))
        numbers = dict(_numbers(items))
        step = int(numbers.get("_step", step))
        self.last_at = numbers.get("_timestamp", self.last_at or self.started_at)
        for name, content in numbers.items():
            if not name.startswith("_"):
                self._logged.add(name)
                self._add_point(name, step, content)

    def _add_summary(self, message: bytes) -> None:
        """Add values that the script put into the summary. Rows of the history are repeated there, with their step."""
        items = [_item(_bytes(value)) for number, value in _fields(message) if number == 1]
        if any(key == ("_step",) for key, _ in items):
            return
        for name, value in _numbers(items):
            if not name.startswith("_") and name not in self._logged:
                self._add_point(name, NO_STEP, value)

    def _add_point(self, name: str, step: int, value: float) -> None:
        if name not in self.series:
            self.series[name] = new_series(name)
        add_point(self.series[name], step, self.last_at or self.started_at, value)

    def _add_files(self, message: bytes) -> None:
        for number, value in _fields(message):
            if number == 1:
                item = dict(_fields(_bytes(value)))
                name = _text(item.get(1, b""))
                if item.get(3, _USER_FILE) == _USER_FILE and name not in self.saved_files:
                    self.saved_files.append(name)

    def _add_artifact(self, message: bytes) -> None:
        """Number the versions of an artifact in the order in which the run logged them."""
        parts = dict(_fields(message))
        if _text(parts.get(4, b"")) == _TABLE_ARTIFACTS:
            return
        name = _text(parts.get(5, b"")).replace("/", "_")
        version = self._versions.get(name, 0)
        self._versions[name] = version + 1
        for number, content in _fields(_bytes(parts.get(12, b""))):
            entry = dict(_fields(_bytes(content))) if number == 4 else {}
            path = _text(entry.get(6, b""))
            if path:  # otherwise it is a reference to a file elsewhere
                file_name = f"artifacts/{name}/v{version}/{_text(entry.get(1, b''))}"
                self.artifact_files.append(ArtifactFile(file_name, path, _text(entry.get(2, b""))))


def _numbers(items: list[tuple[Key, Any]]) -> Iterator[tuple[str, float]]:
    """Yield numbers, also from nested dicts; the parts of other values (images, tables) are not metrics."""
    media = {key[:-1] for key, _ in items if key[-1:] == ("_type",)}
    for key, content in items:
        if not any(key[:length] in media for length in range(1, len(key))):
            yield from _flatten(".".join(key), content)


def _flatten(name: str, content: Any) -> Iterator[tuple[str, float]]:
    if isinstance(content, (bool, int, float)) or content in ("NaN", "Infinity", "-Infinity"):
        if name:
            yield name[:_MAX_NAME], _float(content)
    elif isinstance(content, dict) and "_type" not in content:
        for part, inner in content.items():
            yield from _flatten(f"{name}.{part}", inner)


def _float(content: Any) -> float:
    try:
        return float(content)
    except OverflowError:  # an integer of any length
        return math.copysign(math.inf, content)


def _item(message: bytes) -> tuple[Key, Any]:
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
    return (key,) if key else tuple(nested), content


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    for number, _, value in fields(message):
        yield number, value


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
