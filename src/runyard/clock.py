"""The only place that asks the time, and durations as people read them."""

from __future__ import annotations

import time

now = time.time
monotonic = time.monotonic


def utc_text(seconds: float) -> str:
    """``2026-11-15T21:04:05.123456Z``, the form that run details carry."""
    from datetime import datetime, timezone  # 1 ms that most commands never need

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def duration_text(seconds: float) -> str:
    """``0.35 s``, ``12 s``, ``3 min 05 s``, ``2 h 07 min``: short, with the unit that matters."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds < 0.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
