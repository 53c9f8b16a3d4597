"""The current time, and text for times and durations.

``now`` is for records and messages. Durations, limits and retries use ``monotonic``, because the clock may be set.
"""

from __future__ import annotations

import time

now = time.time
monotonic = time.monotonic


def since_boot() -> float:
    """Seconds since the machine started, including the time that it was suspended; the same for all processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else monotonic()


def utc_text(seconds: float) -> str:
    """Format as ``2026-11-15T21:04:05.123456Z``, as in run details."""
    from datetime import datetime, timezone  # imported here: most commands do not need it, and it takes 1 ms

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def duration_text(seconds: float) -> str:
    """Format as ``0.35 s``, ``12 s``, ``3 min 05 s`` or ``2 h 07 min``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds < 0.995 else f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"
