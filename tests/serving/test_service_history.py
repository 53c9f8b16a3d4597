"""Recent request rates and latencies of a service."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from runyard import clock
from runyard.scoring.counters import Counter
from runyard.serving.history import History


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by one second per call."""
    ticks = itertools.count(1000.0)
    monkeypatch.setattr(clock, "now", lambda: next(ticks))


def test_each_point_has_the_requests_and_latencies_of_one_second(tmp_path: Path, seconds: None) -> None:
    history, counter = History(), Counter(tmp_path / "1-0")
    history.sample("svc", tmp_path)
    for _ in range(20):
        counter.record(200, 0.010, 8, 8)
    counter.record(500, 1.0, 8, 8)
    history.sample("svc", tmp_path)
    (point,) = history.points("svc")
    assert point["requests_per_second"] == 21
    assert point["failed_per_second"] == 1
    assert point["p50_ms"] == pytest.approx(10, rel=0.1)
    assert point["p50_ms"] == pytest.approx(point["p95_ms"])
    assert point["p99_ms"] == pytest.approx(1000, rel=0.1)


def test_recent_keeps_the_latency_of_the_last_second_with_requests(tmp_path: Path, seconds: None) -> None:
    history, counter = History(), Counter(tmp_path / "1-0")
    assert history.recent("svc") == {"requests_per_second": 0}
    history.sample("svc", tmp_path)
    for _ in range(10):
        counter.record(200, 0.010, 8, 8)
    history.sample("svc", tmp_path)
    history.sample("svc", tmp_path)
    recent = history.recent("svc")
    assert recent["requests_per_second"] == 5  # ten in one of two seconds
    assert recent["p99_ms"] == pytest.approx(10, rel=0.1)
