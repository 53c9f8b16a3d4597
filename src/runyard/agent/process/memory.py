"""Memory usage of a run, and the kernel's count of out-of-memory kills."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from runyard.posix.procfs import Stat

GB = 1024**3
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_OOM_KILLS = re.compile(r"^oom_kill (\d+)", re.MULTILINE)
_PROPORTIONAL_KB = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def memory_in_use_gb(processes: Iterable[Stat], limit_gb: float) -> float:
    """Resident memory of the processes; if that exceeds the limit, their proportional set size.

    Workers forked from one parent share its pages, which the plain sum counts once per worker. The exact figure makes
    the kernel walk through all pages, so it is read only when it matters.
    """
    processes = list(processes)
    resident = sum(process.resident_pages for process in processes) * _PAGE_BYTES / GB
    if resident <= limit_gb:
        return resident
    return sum(map(_proportional_bytes, processes)) / GB


def oom_kills() -> int:
    """A counter that only grows: of the agent's control group if it has one, otherwise of the machine."""
    for path in _counter_files():
        try:
            match = _OOM_KILLS.search(path.read_text())
        except OSError:
            continue
        if match:
            return int(match.group(1))
    return 0


def _proportional_bytes(process: Stat) -> int:
    try:
        match = _PROPORTIONAL_KB.search(Path(f"/proc/{process.pid}/smaps_rollup").read_text())
    except OSError:  # it has ended, or belongs to another user
        match = None
    return int(match.group(1)) * 1024 if match else process.resident_pages * _PAGE_BYTES


def _counter_files() -> list[Path]:
    files = []
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if path != "/" and controllers == "":
            files.append(Path(f"/sys/fs/cgroup{path}/memory.events"))
        elif path != "/" and "memory" in controllers.split(","):
            files.append(Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"))
    return [*files, Path("/proc/vmstat")]
