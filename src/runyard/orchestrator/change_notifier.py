"""Tells whoever waits for a run that it changed. Rung from threads, heard in the server's event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict

EVERY_RUN = ""
_GATHER_S = 0.03


class Bell:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, set[Listener]] = defaultdict(set)
        self.closed = False  # the yard goes away: whoever listens should listen to the next one

    def ring(self, run_id: str, *, urgent: bool = False) -> None:
        """Urgent: somebody waits for just this. Other rings may be heard together with the next ones."""
        with self._lock:
            waiting = [*self._waiting.get(run_id, ()), *self._waiting.get(EVERY_RUN, ())]
        for listener in waiting:
            listener.loop.call_soon_threadsafe(listener.hear, run_id, urgent)

    def close(self) -> None:
        self.closed = True
        with self._lock:
            waiting = list(self._waiting)
        for run_id in waiting:
            self.ring(run_id, urgent=True)

    def listen(self, run_id: str) -> Listener:
        """To one run, or to `EVERY_RUN`."""
        return Listener(self, run_id)

    @property
    def listeners(self) -> int:
        with self._lock:
            return sum(map(len, self._waiting.values()))


class Listener:
    """`async with bell.listen(run_id) as listener: await listener.next(timeout_s)`."""

    def __init__(self, bell: Bell, run_id: str) -> None:
        self.loop = asyncio.get_running_loop()
        self._bell, self._run_id = bell, run_id
        self._rung, self._urgent = asyncio.Event(), asyncio.Event()
        self.heard: set[str] = set()  # the runs that were rung for, until somebody takes them out

    async def __aenter__(self) -> Listener:
        with self._bell._lock:
            self._bell._waiting[self._run_id].add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        with self._bell._lock:
            self._bell._waiting[self._run_id].discard(self)
            if not self._bell._waiting[self._run_id]:
                del self._bell._waiting[self._run_id]

    def hear(self, run_id: str, urgent: bool) -> None:
        self.heard.add(run_id)
        self._rung.set()
        if urgent:
            self._urgent.set()

    async def next(self, timeout_s: float) -> bool:
        """True after the next ring, False after the time."""
        if not await _within(self._rung, timeout_s):
            return False
        # a run that starts rings several times within milliseconds, just when its start should not be disturbed
        await _within(self._urgent, _GATHER_S)
        self._rung.clear()
        self._urgent.clear()
        return True


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True
