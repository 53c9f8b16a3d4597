"""Tells whoever waits for a run that it changed. Rung from threads, heard in the server's event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict


class Bell:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(set)

    def ring(self, run_id: str) -> None:
        with self._lock:
            waiting = list(self._waiting.get(run_id, ()))
        for loop, event in waiting:
            loop.call_soon_threadsafe(event.set)

    def listen(self, run_id: str) -> Listener:
        return Listener(self, run_id)

    @property
    def listeners(self) -> int:
        with self._lock:
            return sum(map(len, self._waiting.values()))


class Listener:
    """`async with bell.listen(run_id) as listener: await listener.next(timeout_s)`."""

    def __init__(self, bell: Bell, run_id: str) -> None:
        self._bell, self._run_id = bell, run_id
        self._entry = (asyncio.get_running_loop(), asyncio.Event())

    async def __aenter__(self) -> Listener:
        with self._bell._lock:
            self._bell._waiting[self._run_id].add(self._entry)
        return self

    async def __aexit__(self, *_: object) -> None:
        with self._bell._lock:
            self._bell._waiting[self._run_id].discard(self._entry)
            if not self._bell._waiting[self._run_id]:
                del self._bell._waiting[self._run_id]

    async def next(self, timeout_s: float) -> bool:
        """True at the next ring, False after the time."""
        event = self._entry[1]
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except asyncio.TimeoutError:
            return False
        event.clear()
        return True
