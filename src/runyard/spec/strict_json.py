"""Parsing of JSON from sources that are not trusted: other processes, sockets, and files that scripts can write."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, Union

# Converting a longer integer takes time that grows with the square of its length.
_MAX_INT_CHARACTERS, _MAX_FLOAT_CHARACTERS = 20, 100


def parse_json(text: Union[str, bytes, bytearray], *, max_bytes: int, max_depth: int = 16) -> Any:
    """Parse a JSON text within bounds.

    Args:
        text: UTF-8 if it is bytes.
        max_bytes: Limit for the length of the text.
        max_depth: Limit for the nesting of lists and objects.

    Raises:
        ValueError: The text is not JSON, exceeds a limit, or contains a number that JSON does not define (NaN,
            Infinity) or that does not fit into 64 bits. No other exception is raised.
    """
    if len(text) > max_bytes:
        raise ValueError(f"{len(text)} bytes, at most {max_bytes} are allowed")
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        value = json.loads(decoded, parse_int=_parse_int, parse_float=_parse_float, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError(f"nested deeper than {max_depth} levels") from None
    _check_depth(value, max_depth)
    return value


def _check_depth(value: Any, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth + 1):
        containers = [item for item in level if isinstance(item, (list, dict))]
        if not containers:
            return
        level = [item for value in containers for item in (value.values() if isinstance(value, dict) else value)]
    raise ValueError(f"nested deeper than {max_depth} levels")


def _parse_int(text: str) -> int:
    if len(text) > _MAX_INT_CHARACTERS:
        raise ValueError(f"a number of {len(text)} characters")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"the number {text} does not fit into 64 bits")
    return number


def _parse_float(text: str) -> float:
    if len(text) > _MAX_FLOAT_CHARACTERS:
        raise ValueError(f"a number of {len(text)} characters")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is too large")
    return number


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
