"""Samples of the yard's memory and descriptors, and the decision whether they stay flat."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

_INTERVAL_S = 1.0
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
_WARMUP_SHARE = 0.2  # caches fill, and modules are imported when they are first used
_MB_SLACK = 12.0
_SHARE_SLACK = 0.10
_DESCRIPTOR_SLACK = 12


class Sample(NamedTuple):
    pid: int
    megabytes: float
    descriptors: int
    threads: int


class Trend(NamedTuple):
    """One figure at the begin and at the end of the life of a process."""

    name: str
    first: float
    last: float
    peak: float
    is_flat: bool

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return f"{self.name:12} {self.first:8.1f} -> {self.last:8.1f}   peak {self.peak:8.1f}   {verdict}"


class Sampler(threading.Thread):
    """Samples the process that ``find_pid`` returns until it is stopped."""

    def __init__(self, find_pid: Callable[[], int | None]) -> None:
        super().__init__(name="sampler", daemon=True)
        self._find_pid = find_pid
        self._stopped = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:
        while not self._stopped.wait(_INTERVAL_S):
            pid = self._find_pid()
            sample = take(pid) if pid is not None else None
            if sample is not None:
                self.samples.append(sample)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def take(pid: int) -> Sample | None:
    """One sample; None if the process has ended."""
    process = Path("/proc", str(pid))
    try:
        resident_pages = int((process / "statm").read_text().split()[1])
        descriptors, threads = len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))
    except OSError:
        return None
    return Sample(pid, resident_pages * _PAGE_MB, descriptors, threads)


def longest_life(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of the process with the longest life: one that was killed earlier is no evidence of growth."""
    pids = [sample.pid for sample in samples]
    longest = max(set(pids), key=pids.count, default=0)
    return [sample for sample in samples if sample.pid == longest]


def trends(samples: Sequence[Sample]) -> list[Trend]:
    life = longest_life(samples)
    life = life[int(len(life) * _WARMUP_SHARE) :]
    if not life:
        return []
    return [
        _trend("memory MB", [sample.megabytes for sample in life], _MB_SLACK, _SHARE_SLACK),
        _trend("descriptors", [float(sample.descriptors) for sample in life], _DESCRIPTOR_SLACK, _SHARE_SLACK),
        _trend("threads", [float(sample.threads) for sample in life], _DESCRIPTOR_SLACK, _SHARE_SLACK),
    ]


def _trend(name: str, values: Sequence[float], slack: float, share: float) -> Trend:
    """Medians of the first and the last quarter: single peaks are allowed, growth is not."""
    quarter = max(1, len(values) // 4)
    first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
    return Trend(name, first, last, max(values), last <= first * (1 + share) + slack)


def wait_until(condition: Callable[[], object], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
