"""The current activity of each run as text. In memory only: it is meaningless after a restart."""

from __future__ import annotations

import threading

from runyard import clock


class Activities:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: dict[str, tuple[str, float]] = {}

    def set(self, run_id: str, text: str) -> None:
        with self._lock:
            self._current[run_id] = (text, clock.now())

    def get(self, run_id: str) -> tuple[str, float | None]:
        """The text and since when; an empty text if there is none."""
        with self._lock:
            return self._current.get(run_id, ("", None))

    def forget(self, run_id: str) -> None:
        with self._lock:
            self._current.pop(run_id, None)
