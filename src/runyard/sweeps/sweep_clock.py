"""Measures how long a sweep has been active, independent of the machine's clock, which may be set at any time."""

from __future__ import annotations

import json

from runyard import clock
from runyard.posix import procfs
from runyard.posix.atomic_write import write_text
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.strict_json import parse_json

_MAX_BYTES = 4096


class SweepClock:
    """The start is stored in the sweep's folder, in seconds since boot, so that it survives restarts of the yard.

    Across a restart of the machine, only the clock can tell the time that has passed.
    """

    def __init__(self, folder: RunFolder, created_at: float) -> None:
        mark = _read(folder)
        boot_id = procfs.boot_id()
        if mark is not None and mark[0] == boot_id:
            self._started = mark[1]
            return
        self._started = clock.since_boot() - max(clock.now() - created_at, 0.0)
        write_text(folder.started, json.dumps({"boot_id": boot_id, "since_boot": self._started}))

    def elapsed_s(self) -> float:
        return clock.since_boot() - self._started


def _read(folder: RunFolder) -> tuple[str, float] | None:
    try:
        mark = parse_json(read_regular(folder.started, _MAX_BYTES), max_bytes=_MAX_BYTES)
    except (OSError, ValueError):
        return None
    if not isinstance(mark, dict):
        return None
    boot_id, started = mark.get("boot_id"), mark.get("since_boot")
    return (boot_id, float(started)) if isinstance(boot_id, str) and isinstance(started, (int, float)) else None
