"""Formats numbers, sizes and durations for display."""

from __future__ import annotations

from runyard.clock import duration_text

TYPE_CHECKING = False  # importing typing would slow down `runyard run`
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}  # the API's form of numbers that JSON lacks


def short_duration(seconds: float) -> str:
    """Like `duration_text`, but in milliseconds below 0.1 s."""
    return f"{seconds * 1000:.0f} ms" if seconds < 0.0995 else duration_text(seconds)


def size_text(count: float) -> str:
    """``812 B``, ``1.2 MB``: in powers of 1000."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 999.5 or unit == "TB":
            return f"{count:.1f} {unit}" if count < 9.95 else f"{count:.0f} {unit}"
    raise AssertionError


def age_text(seconds: float) -> str:
    """``now``, ``40 s``, ``5 min``, ``3 h``, ``12 d``: one unit, for a column."""
    if seconds < 1:
        return "now"
    for unit, length in (("s", 60), ("min", 60), ("h", 24), ("d", 0)):
        if not length or seconds < length:
            return f"{int(seconds)} {unit}"
        seconds /= length
    raise AssertionError


def value_text(value: Any) -> str:
    """A metric value with 6 significant digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {value_text(item)}" for name, item in value.items()) + "}"
    text = _NUMBERS.get(str(value)) or str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration_of(view: dict[str, Any], now: float) -> str:
    """Run time of the script; empty if it has not started."""
    started, ended = view["started_at"], view["ended_at"]
    if started is None:
        return ""
    return short_duration(max((now if ended is None else ended) - started, 0))  # a client chooses its own times
