"""Runs the scoring function.

The function always runs in the main thread, where scripts expect to run with their sessions, graphs and database
connections. While it is fast, the event loop runs there too: switching threads would cost more than most small models
take. While it is slow, the loop runs in a separate thread, so that health checks and rejections stay responsive.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from runyard.scoring.dispatcher import Dispatcher, Job
from runyard.scoring.responses import Response

_SLOW_S = 0.1  # total of the last eight calls
_FAST_S = 0.002  # average of 64 calls
Work = Callable[[], "list[tuple[Job, Response]]"]


class Executor:
    """``submit`` is called in the loop's thread, and responses are delivered there."""

    def __init__(self, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop) -> None:
        self._dispatcher, self._loop = dispatcher, loop
        self._separate = False
        self._stopped = False
        self._queue: queue.SimpleQueue[Optional[Work]] = queue.SimpleQueue()
        self._recent = [0.0] * 8
        self._calls = 0
        self._spent = 0.0
        self._is_fast = False
        self.call_started: Optional[float] = None  # start of the current call
        self.current: tuple[Job, ...] = ()

    def submit(self, jobs: tuple[Job, ...], work: Work) -> None:
        if self._separate:
            self._queue.put(lambda: self._timed(jobs, work))
            return
        for job, response in self._timed(jobs, work):
            self._dispatcher.complete(job, response)
        if self._is_slow():
            self._separate, self._is_fast = True, False
            self._loop.stop()

    def run(self) -> None:
        """Run in the main thread until ``end`` is called."""
        while not self._stopped:
            if not self._separate:
                self._loop.run_forever()
                continue
            thread = threading.Thread(target=self._run_loop, name="requests", daemon=True)
            thread.start()
            self._work()
            thread.join()
            self._rejoin()

    def end(self) -> None:
        """Stop; called in the loop's thread."""
        self._stopped = True
        self._loop.stop()
        self._queue.put(None)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _work(self) -> None:
        while True:
            work = self._queue.get()
            if work is None:
                return
            self._loop.call_soon_threadsafe(self._deliver, work())

    def _rejoin(self) -> None:
        """Process what the stopped loop had queued before the loop continues in this thread."""
        self._separate = False
        while not self._queue.empty():
            work = self._queue.get()
            if work is not None:
                self._loop.call_soon(self._deliver, work())

    def _deliver(self, responses: list[tuple[Job, Response]]) -> None:
        for job, response in responses:
            self._dispatcher.complete(job, response)
        if self._separate and self._is_fast and not self._stopped:
            self._is_fast = False
            self._loop.stop()
            self._queue.put(None)

    def _timed(self, jobs: tuple[Job, ...], work: Work) -> list[tuple[Job, Response]]:
        self.current = jobs
        for job in jobs:
            job.connection.begin_scoring()
        self.call_started = started = time.monotonic()
        try:
            return work()
        finally:
            self.call_started = None
            duration = time.monotonic() - started
            self._recent[self._calls & 7] = duration
            self._calls += 1
            self._spent += duration
            if not self._calls & 63:
                self._is_fast, self._spent = self._spent < 64 * _FAST_S and not self._is_slow(), 0.0

    def _is_slow(self) -> bool:
        return sum(self._recent) > _SLOW_S


class SingleRequests:
    def __init__(self, executor: Executor, scorer: Any) -> None:
        self._executor, self._score = executor, scorer.score

    def __call__(self, job: Job) -> None:
        self._executor.submit((job,), lambda: [(job, self._score(job.head, job.body, job.connection.request_id))])
