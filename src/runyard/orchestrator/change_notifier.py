"""Notifies subscribers in the server's event loop about changed runs, from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict

EVERY_RUN = ""
_DEBOUNCE_S = 0.03


class ChangeNotifier:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: dict[str, set[Subscription]] = defaultdict(set)
        self.closed = False  # the yard is stopping: subscribers should reconnect to the next one

    def notify(self, run_id: str, *, urgent: bool = False) -> None:
        """Report a change. An urgent one is delivered immediately, others are combined with those that follow."""
        with self._lock:
            subscriptions = [*self._subscriptions.get(run_id, ()), *self._subscriptions.get(EVERY_RUN, ())]
        for subscription in subscriptions:
            subscription.loop.call_soon_threadsafe(subscription.receive, run_id, urgent)

    def close(self) -> None:
        self.closed = True
        with self._lock:
            run_ids = list(self._subscriptions)
        for run_id in run_ids:
            self.notify(run_id, urgent=True)

    def subscribe(self, run_id: str) -> Subscription:
        """Subscribe to one run, or to `EVERY_RUN`."""
        return Subscription(self, run_id)

    @property
    def subscriber_count(self) -> int:
        with self._lock:
            return sum(map(len, self._subscriptions.values()))


class Subscription:
    """`async with notifier.subscribe(run_id) as subscription: await subscription.next(timeout_s)`."""

    def __init__(self, notifier: ChangeNotifier, run_id: str) -> None:
        self.loop = asyncio.get_running_loop()
        self._notifier, self._run_id = notifier, run_id
        self._notified, self._urgent = asyncio.Event(), asyncio.Event()
        self.changed_runs: set[str] = set()  # cleared by the subscriber

    async def __aenter__(self) -> Subscription:
        with self._notifier._lock:
            self._notifier._subscriptions[self._run_id].add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        subscriptions = self._notifier._subscriptions
        with self._notifier._lock:
            subscriptions[self._run_id].discard(self)
            if not subscriptions[self._run_id]:
                del subscriptions[self._run_id]

    def receive(self, run_id: str, urgent: bool) -> None:
        self.changed_runs.add(run_id)
        self._notified.set()
        if urgent:
            self._urgent.set()

    async def next(self, timeout_s: float) -> bool:
        """Wait for the next change; False if none came within the time."""
        if not await _wait(self._notified, timeout_s):
            return False
        # a starting run changes several times within milliseconds, when its start should not be slowed down
        await _wait(self._urgent, _DEBOUNCE_S)
        self._notified.clear()
        self._urgent.clear()
        return True


async def _wait(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True
