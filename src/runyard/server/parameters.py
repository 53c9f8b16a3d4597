"""Parsing of query parameters that FastAPI's own types do not cover."""

from __future__ import annotations

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


def clamp(value: int, low: int, high: int = 2**62) -> int:
    """Limit a number; the default upper bound is safe for a column of 64 bits."""
    return max(low, min(value, high))
