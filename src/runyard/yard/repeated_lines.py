"""Limits how often the same message is logged: a client must not be able to fill the disk with log lines."""

from __future__ import annotations

import logging
import threading

from runyard import clock

_MAX_LINES = 20
_PERIOD_S = 60.0
_MAX_MESSAGES = 1000


class RepeatedLineFilter(logging.Filter):
    """Passes up to 20 warnings or errors of one kind per minute, and appends the number of omitted ones to the next.

    Messages are of one kind if their text before the insertion of arguments, which a client may choose, is the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str, str], tuple[float, int]] = {}  # start of the period, lines since then

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        exception = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] is not None else ""
        kind = (record.name, str(record.msg), exception)
        now = clock.monotonic()
        with self._lock:
            begin, lines = self._counts.get(kind, (now, 0))
            omitted = 0
            if now - begin >= _PERIOD_S:
                begin, lines, omitted = now, 0, max(0, lines - _MAX_LINES)
            if kind not in self._counts and len(self._counts) >= _MAX_MESSAGES:
                self._counts.clear()
            self._counts[kind] = (begin, lines + 1)
        if omitted:
            record.msg, record.args = f"{record.getMessage()} ({omitted} similar lines before were not logged)", None
        return lines < _MAX_LINES
