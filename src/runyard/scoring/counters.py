"""What a worker counts: numbers in a file that is mapped into its memory, so that counting is an addition.

Whoever wants to know reads the file: the worker may be busy, or dead. Latencies are kept as a histogram whose buckets
are an eighth of a power of two wide, so percentiles are right within seven per cent whatever their size.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PID, STARTED, REQUESTS, OK, REFUSED, FAILED, TURNED_AWAY, MICROSECONDS, BYTES_IN, BYTES_OUT = range(10)
BUSY, CONNECTIONS, BATCHES, BATCHED, PASSED_ON = range(10, 15)
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
    """The smallest number of microseconds that is above the bucket."""
    if bucket < 16:
        return bucket + 1
    size, part = divmod(bucket - 16, 8)
    return (8 + part + 1) << (size + 1)


class Counter:
    """The writing end: one process, and one thread of it."""

    def __init__(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, _BYTES)
            self._map = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)
        self.numbers = memoryview(self._map).cast("Q")

    def answered(self, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        numbers = self.numbers
        microseconds = min(int(seconds * 1e6), _LONGEST_US)
        numbers[REQUESTS] += 1
        numbers[OK if status < 400 else REFUSED if status < 500 else TURNED_AWAY if status == 503 else FAILED] += 1
        numbers[MICROSECONDS] += microseconds
        numbers[BYTES_IN] += bytes_in
        numbers[BYTES_OUT] += bytes_out
        numbers[_HEAD + bucket_of(microseconds)] += 1


def read(folder: Path, version: int | None = None) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Version, place and numbers of each worker that ever was."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    for name in names:
        which, _, place = name.partition("-")
        if not (which.isdigit() and place.isdigit()) or (version is not None and int(which) != version):
            continue
        try:
            data = (folder / name).read_bytes()
        except OSError:
            continue
        if len(data) == _BYTES:
            yield int(which), int(place), struct.unpack(f"={_SLOTS}Q", data)


def added(many: Iterable[Sequence[int]]) -> tuple[int, ...]:
    rows = list(many)
    return tuple(map(sum, zip(*rows))) if rows else (0,) * _SLOTS


def percentile(numbers: Sequence[int], share: float) -> float:
    """In seconds: in the middle of the bucket that it falls into; 0 when there was no request."""
    buckets = numbers[_HEAD:]
    left = share * sum(buckets)
    for bucket, count in enumerate(buckets):
        left -= count
        if count and left <= 0:
            low = upper_edge(bucket - 1) if bucket else 0
            return (low + upper_edge(bucket)) / 2e6
    return 0.0


def since(now: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """What was counted between two looks."""
    return tuple(max(a - b, 0) for a, b in zip(now, before))


def prometheus(service: str, folder: Path) -> str:
    """The text that Prometheus reads."""
    rows = list(read(folder))
    versions = sorted({version for version, _, _ in rows})
    by_version = {v: added(numbers for version, _, numbers in rows if version == v) for v in versions}
    lines: list[str] = []

    def series(name: str, kind: str, text: str, values: Iterable[tuple[str, object]]) -> None:
        lines.extend((f"# HELP runyard_service_{name} {text}", f"# TYPE runyard_service_{name} {kind}"))
        lines.extend(f"runyard_service_{name}{{{labels}}} {value}" for labels, value in values)

    def labels(version: int, more: str = "") -> str:
        return f'service="{service}",version="{version}"{more}'

    codes = (("ok", OK), ("refused", REFUSED), ("failed", FAILED), ("turned_away", TURNED_AWAY))
    series(
        "requests_total",
        "counter",
        "Requests by how they ended.",
        ((labels(v, f',result="{word}"'), n[place]) for v, n in by_version.items() for word, place in codes),
    )
    for name, place, text in (
        ("received_bytes_total", BYTES_IN, "Bytes of request bodies."),
        ("sent_bytes_total", BYTES_OUT, "Bytes of answers."),
        ("batches_total", BATCHES, "Calls of the model for several requests together."),
        ("batched_rows_total", BATCHED, "Rows in those calls."),
    ):
        series(name, "counter", text, ((labels(v), n[place]) for v, n in by_version.items()))
    alive = [(version, place, n) for version, place, n in rows if n[PID] and Path(f"/proc/{n[PID]}").exists()]
    for name, place, text in (
        ("busy_requests", BUSY, "Requests that are being answered."),
        ("open_connections", CONNECTIONS, "Connections of clients."),
    ):
        series(name, "gauge", text, ((labels(v, f',worker="{w}"'), n[place]) for v, w, n in alive))
    lines += [
        "# HELP runyard_service_latency_seconds Time from a whole request to its answer.",
        "# TYPE runyard_service_latency_seconds histogram",
    ]
    for version, numbers in by_version.items():
        lines += _histogram(labels(version), numbers)
    return "\n".join(lines) + "\n"


def _histogram(labels: str, numbers: Sequence[int]) -> Iterator[str]:
    """Every eighth edge is enough for a dashboard: a power of two, from 128 microseconds to a minute."""
    name, buckets = "runyard_service_latency_seconds", numbers[_HEAD:]
    for power in range(7, 27):
        edge = bucket_of(1 << power)
        yield f'{name}_bucket{{{labels},le="{(1 << power) / 1e6:g}"}} {sum(buckets[:edge])}'
    yield f'{name}_bucket{{{labels},le="+Inf"}} {sum(buckets)}'
    yield f"{name}_sum{{{labels}}} {numbers[MICROSECONDS] / 1e6:g}"
    yield f"{name}_count{{{labels}}} {sum(buckets)}"
