"""Parsing of parameters and fields that FastAPI's own types do not cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from runyard.errors import UserErrorException


def parse_object(text: str | None, name: str) -> dict[str, str | None] | None:
    """Parse a JSON object of labels; None if the parameter is absent."""
    if text is None:
        return None
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        hint = f'for example {name}={{"area": "digits"}}'
        raise UserErrorException(f"{name}: expected a JSON object, got {text!r}", hint=hint)
    return value


def local_path(text: str, name: str) -> Path:
    """A path on the yard's machine, which need not exist."""
    if "\0" in text:
        raise UserErrorException(f"{name}: {text!r} is not a path")
    return Path(text)


def clamp(value: int, low: int, high: int = 2**62) -> int:
    """Limit a number; the default upper bound is safe for a column of 64 bits."""
    return max(low, min(value, high))
