"""What each run is doing or waiting for right now, in a person's words. In memory: it is only true while it lasts."""

from __future__ import annotations

import threading

from runyard import clock


class Activities:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: dict[str, tuple[str, float]] = {}

    def set(self, run_id: str, text: str) -> None:
        with self._lock:
            self._now[run_id] = (text, clock.now())

    def get(self, run_id: str) -> tuple[str, float | None]:
        with self._lock:
            return self._now.get(run_id, ("", None))

    def forget(self, run_id: str) -> None:
        with self._lock:
            self._now.pop(run_id, None)
