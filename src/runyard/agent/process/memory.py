"""How much memory a run uses, and whether the kernel has been killing for want of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from runyard.agent.process.process_tree import Process

GB = 1024**3
_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_in_use_gb(processes: Iterable[Process], limit_gb: float) -> float:
    """Resident memory, or, where that is above the limit, each process's fair share of it.

    Workers that were forked from one parent share its pages, so the plain sum counts them once for each of them; the
    exact figure makes the kernel walk through all pages, so it is asked for only when it matters.
    """
    processes = list(processes)
    resident = sum(process.resident_pages for process in processes) * _PAGE / GB
    if resident <= limit_gb:
        return resident
    return sum(_proportional(process) for process in processes) / GB


def oom_kills() -> int:
    """A count that only grows: of the agent's own control group where it has one, else of the whole machine."""
    for path, pattern in _counters():
        try:
            found = re.search(pattern, path.read_text())
        except OSError:
            continue
        if found:
            return int(found.group(1))
    return 0


def _proportional(process: Process) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process.pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:  # it ended meanwhile, or is not ours to look at
        found = None
    return int(found.group(1)) * 1024 if found else process.resident_pages * _PAGE


def _counters() -> list[tuple[Path, str]]:
    counters = []
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if path != "/" and controllers == "":
            counters.append((Path(f"/sys/fs/cgroup{path}/memory.events"), r"(?m)^oom_kill (\d+)"))
        elif path != "/" and "memory" in controllers.split(","):
            counters.append((Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"), r"(?m)^oom_kill (\d+)"))
    return [*counters, (Path("/proc/vmstat"), r"(?m)^oom_kill (\d+)")]
