"""Counters of a worker in a memory-mapped file: counting is an addition, and other processes read the file.

Readers do not depend on the worker, which may be busy or dead. Latencies are a histogram with eight buckets per power
of two, so percentiles are accurate to within seven percent.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PID, STARTED, REQUESTS, OK, CLIENT_ERROR, FAILED, REJECTED, MICROSECONDS, BYTES_IN, BYTES_OUT = range(10)
BUSY, CONNECTIONS, BATCHES, BATCHED, FORWARDED = range(10, 15)
_HEAD = 32
_BUCKETS = 288
_SLOTS = _HEAD + _BUCKETS
_BYTES = _SLOTS * 8
_LONGEST_US = (1 << 36) - 1

GAUGES = (PID, STARTED, BUSY, CONNECTIONS)


def bucket_of(microseconds: int) -> int:
    if microseconds < 16:
        return microseconds
    size = microseconds.bit_length()
    return 16 + ((size - 5) << 3) + ((microseconds >> (size - 4)) & 7)


def upper_edge(bucket: int) -> int:
    """The smallest number of microseconds above the bucket."""
    if bucket < 16:
        return bucket + 1
    size, part = divmod(bucket - 16, 8)
    return (8 + part + 1) << (size + 1)


class Counter:
    """The writer: used by one thread of one process."""

    def __init__(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, _BYTES)
            self._map = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)
        self.numbers = memoryview(self._map).cast("Q")

    def record(self, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        numbers = self.numbers
        microseconds = min(int(seconds * 1e6), _LONGEST_US)
        numbers[REQUESTS] += 1
        numbers[OK if status < 400 else CLIENT_ERROR if status < 500 else REJECTED if status == 503 else FAILED] += 1
        numbers[MICROSECONDS] += microseconds
        numbers[BYTES_IN] += bytes_in
        numbers[BYTES_OUT] += bytes_out
        numbers[_HEAD + bucket_of(microseconds)] += 1


def read(folder: Path, version: int | None = None) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Version, slot and counters of every worker, past and present."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    for name in names:
        number, _, slot = name.partition("-")
        if not (number.isdigit() and slot.isdigit()) or (version is not None and int(number) != version):
            continue
        try:
            data = (folder / name).read_bytes()
        except OSError:
            continue
        if len(data) == _BYTES:
            yield int(number), int(slot), struct.unpack(f"={_SLOTS}Q", data)


def total(workers: Iterable[Sequence[int]]) -> tuple[int, ...]:
    rows = list(workers)
    return tuple(map(sum, zip(*rows))) if rows else (0,) * _SLOTS


def percentile(numbers: Sequence[int], share: float) -> float:
    """A latency percentile in seconds: the middle of its bucket; 0 without requests."""
    buckets = numbers[_HEAD:]
    remaining = share * sum(buckets)
    for bucket, count in enumerate(buckets):
        remaining -= count
        if count and remaining <= 0:
            low = upper_edge(bucket - 1) if bucket else 0
            return (low + upper_edge(bucket)) / 2e6
    return 0.0


def difference(now: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """The increase between two readings."""
    return tuple(max(a - b, 0) for a, b in zip(now, before))


def prometheus(service: str, folder: Path) -> str:
    """All counters in the Prometheus text format."""
    rows = list(read(folder))
    versions = sorted({version for version, _, _ in rows})
    by_version = {v: total(numbers for version, _, numbers in rows if version == v) for v in versions}
    lines: list[str] = []

    def series(name: str, kind: str, text: str, values: Iterable[tuple[str, object]]) -> None:
        lines.extend((f"# HELP runyard_service_{name} {text}", f"# TYPE runyard_service_{name} {kind}"))
        lines.extend(f"runyard_service_{name}{{{labels}}} {value}" for labels, value in values)

    def labels(version: int, more: str = "") -> str:
        return f'service="{service}",version="{version}"{more}'

    codes = (("ok", OK), ("refused", CLIENT_ERROR), ("failed", FAILED), ("turned_away", REJECTED))
    series(
        "requests_total",
        "counter",
        "Requests by result.",
        ((labels(v, f',result="{word}"'), n[index]) for v, n in by_version.items() for word, index in codes),
    )
    for name, index, text in (
        ("received_bytes_total", BYTES_IN, "Bytes of request bodies."),
        ("sent_bytes_total", BYTES_OUT, "Bytes of responses."),
        ("batches_total", BATCHES, "Batched calls of the model."),
        ("batched_rows_total", BATCHED, "Rows in batched calls."),
    ):
        series(name, "counter", text, ((labels(v), n[index]) for v, n in by_version.items()))
    alive = [(version, slot, n) for version, slot, n in rows if n[PID] and Path(f"/proc/{n[PID]}").exists()]
    for name, index, text in (
        ("busy_requests", BUSY, "Requests in progress."),
        ("open_connections", CONNECTIONS, "Open client connections."),
    ):
        series(name, "gauge", text, ((labels(v, f',worker="{w}"'), n[index]) for v, w, n in alive))
    lines += [
        "# HELP runyard_service_latency_seconds Time from the complete request to the response.",
        "# TYPE runyard_service_latency_seconds histogram",
    ]
    for version, numbers in by_version.items():
        lines += _histogram(labels(version), numbers)
    return "\n".join(lines) + "\n"


def _histogram(labels: str, numbers: Sequence[int]) -> Iterator[str]:
    """Powers of two from 128 microseconds to a minute: enough for a dashboard."""
    name, buckets = "runyard_service_latency_seconds", numbers[_HEAD:]
    for power in range(7, 27):
        edge = bucket_of(1 << power)
        yield f'{name}_bucket{{{labels},le="{(1 << power) / 1e6:g}"}} {sum(buckets[:edge])}'
    yield f'{name}_bucket{{{labels},le="+Inf"}} {sum(buckets)}'
    yield f"{name}_sum{{{labels}}} {numbers[MICROSECONDS] / 1e6:g}"
    yield f"{name}_count{{{labels}}} {sum(buckets)}"
