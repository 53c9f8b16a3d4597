"""Recent history of services: requests per second and latencies, sampled once per second."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.scoring import counters

_MAX_POINTS = 300
_RECENT_POINTS = 10


class History:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[str, deque[dict[str, float]]] = {}
        self._before: dict[str, tuple[float, tuple[int, ...]]] = {}

    def sample(self, name: str, folder: Path) -> None:
        now, numbers = clock.now(), counters.total(row for _, _, row in counters.read(folder))
        with self._lock:
            at, before = self._before.get(name, (now, numbers))
            self._before[name] = (now, numbers)
            if now <= at:
                return
            point = {"at": now, **_figures(counters.difference(numbers, before), now - at)}
            self._points.setdefault(name, deque(maxlen=_MAX_POINTS)).append(point)

    def forget(self, name: str) -> None:
        with self._lock:
            self._points.pop(name, None)
            self._before.pop(name, None)

    def points(self, name: str) -> list[dict[str, float]]:
        with self._lock:
            return list(self._points.get(name, ()))

    def recent(self, name: str) -> dict[str, float]:
        """For listings: requests per second over the last seconds, and the latest known latencies."""
        points = self.points(name)[-_RECENT_POINTS:]
        rate = sum(point["requests_per_second"] for point in points) / max(1, len(points))
        last = next((point for point in reversed(points) if point["requests_per_second"]), {})
        return {"requests_per_second": round(rate, 2), **{key: last[key] for key in last if key.endswith("_ms")}}


def stats(folder: Path) -> dict[str, Any]:
    """Totals since the deployment, overall and by version."""
    rows = list(counters.read(folder))
    versions = sorted({version for version, _, _ in rows})
    return {
        **_totals([numbers for _, _, numbers in rows]),
        "versions": {str(v): _totals([numbers for version, _, numbers in rows if version == v]) for v in versions},
    }


def _totals(rows: list[tuple[int, ...]]) -> dict[str, Any]:
    numbers = counters.total(rows)
    return {
        "requests": numbers[counters.REQUESTS],
        "ok": numbers[counters.OK],
        "refused": numbers[counters.CLIENT_ERROR],
        "failed": numbers[counters.FAILED],
        "turned_away": numbers[counters.REJECTED],
        "bytes_in": numbers[counters.BYTES_IN],
        "bytes_out": numbers[counters.BYTES_OUT],
        "batches": numbers[counters.BATCHES],
        "batched_rows": numbers[counters.BATCHED],
        **_latencies(numbers),
    }


def _latencies(numbers: tuple[int, ...]) -> dict[str, float]:
    shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}
    return {name: round(counters.percentile(numbers, share) * 1e3, 3) for name, share in shares.items()}


def _figures(numbers: tuple[int, ...], seconds: float) -> dict[str, float]:
    return {
        "requests_per_second": round(numbers[counters.REQUESTS] / seconds, 2),
        "failed_per_second": round((numbers[counters.FAILED] + numbers[counters.REJECTED]) / seconds, 2),
        **_latencies(numbers),
    }
