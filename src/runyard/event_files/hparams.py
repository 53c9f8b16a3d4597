"""Parses the data of TensorBoard's HParams plugin: hyperparameters of a session, and the session's end."""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Optional

from runyard.wire.event_records import fields

PLUGIN = "hparams"
SESSION_START, SESSION_END = "hparams_start", "hparams_end"  # kinds of summary values
FAILURE = 2  # status of a session

_DOUBLE = struct.Struct("<d")
_START_INFO, _END_INFO = 3, 4  # fields of the plugin's data
# `SummaryWriter.add_hparams` writes into a new folder whose name is the time
_TIME_FOLDER = re.compile(r"(?:^|/)\d{9,10}\.\d{1,9}$")
_MAX_KEY, _MAX_TEXT = 255, 6000


def parse_session(content: bytes) -> tuple[str, Any]:
    """The kind and value of the plugin's data: parameters at a start, the status at an end; kind "" for other data."""
    for number, _, value in fields(content):
        if number == _START_INFO and isinstance(value, bytes):
            return SESSION_START, _parameters(value)
        if number == _END_INFO and isinstance(value, bytes):
            return SESSION_END, next((int(status) for n, _, status in fields(value) if n == 1), 0)
    return "", None


def without_time(folder: str) -> str:
    """Remove the folder of ``add_hparams``, so that its metrics have the same names in every run."""
    return _TIME_FOLDER.sub("", folder)


def _parameters(message: bytes) -> dict[str, str]:
    """Read a map of names to values of the type google.protobuf.Value."""
    parameters: dict[str, str] = {}
    for number, _, entry in fields(message):
        if number == 1 and isinstance(entry, bytes):
            key, text = "", None
            for part, _, value in fields(entry):
                if part == 1 and isinstance(value, bytes):
                    key = value.decode("utf-8", "replace")
                elif part == 2 and isinstance(value, bytes):
                    text = _text(value)
            if key and text is not None:
                parameters[key[:_MAX_KEY]] = text[:_MAX_TEXT]
    return parameters


def _text(message: bytes) -> Optional[str]:
    """Strings as they are, other values as JSON. Numbers are stored as floats: 32.0 was 32."""
    for number, _, value in fields(message):
        if number == 1:
            return "null"
        if number == 2 and isinstance(value, bytes):
            (content,) = _DOUBLE.unpack(value)
            return json.dumps(int(content) if content.is_integer() and abs(content) < 1 << 53 else content)
        if number == 3 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if number == 4:
            return json.dumps(bool(value))
    return None
