"""Who runs the scoring function, and when.

The function always runs in the main thread: that is where scripts expect to be, with their sessions, graphs and
database connections. As long as it is quick the event loop runs there too, and a request goes from the socket to the
function and back without a thread in between, which would cost more than most small models do. When it is slow the
loop moves to a thread of its own, so that whoever asks how the service is, or comes when it has too much to do, hears
at once; and back when it is quick again.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from runyard.scoring.dispatcher import Desk, Job
from runyard.scoring.responses import Answer

_SLOW_S = 0.1  # of eight calls together
_QUICK_S = 0.002  # of one call on average, of sixty-four
Work = Callable[[], "list[tuple[Job, Answer]]"]


class Turns:
    """``do`` is called in the loop's thread; the answers are given there too."""

    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self._desk, self._loop = desk, loop
        self._apart = False
        self._ended = False
        self._queue: queue.SimpleQueue[Optional[Work]] = queue.SimpleQueue()
        self._recent = [0.0] * 8
        self._calls = 0
        self._spent = 0.0
        self._is_quick = False
        self.began: Optional[float] = None  # when the call that is going on began
        self.current: tuple[Job, ...] = ()

    def do(self, jobs: tuple[Job, ...], work: Work) -> None:
        if self._apart:
            self._queue.put(lambda: self._called(jobs, work))
            return
        for job, answer in self._called(jobs, work):
            self._desk.scored(job, answer)
        if self._is_slow():
            self._apart, self._is_quick = True, False
            self._loop.stop()

    def run(self) -> None:
        """In the main thread, until ``end``."""
        while not self._ended:
            if not self._apart:
                self._loop.run_forever()
                continue
            thread = threading.Thread(target=self._run_loop, name="requests", daemon=True)
            thread.start()
            self._work()
            thread.join()
            self._come_back()

    def end(self) -> None:
        """In the loop's thread."""
        self._ended = True
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
            self._loop.call_soon_threadsafe(self._give, work())

    def _come_back(self) -> None:
        """The loop stands still: what it asked for in its last moments is done before it runs here."""
        self._apart = False
        while not self._queue.empty():
            work = self._queue.get()
            if work is not None:
                self._loop.call_soon(self._give, work())

    def _give(self, answers: list[tuple[Job, Answer]]) -> None:
        for job, answer in answers:
            self._desk.scored(job, answer)
        if self._apart and self._is_quick and not self._ended:
            self._is_quick = False
            self._loop.stop()
            self._queue.put(None)

    def _called(self, jobs: tuple[Job, ...], work: Work) -> list[tuple[Job, Answer]]:
        self.current = jobs
        self.began = began = time.monotonic()
        try:
            return work()
        finally:
            self.began = None
            taken = time.monotonic() - began
            self._recent[self._calls & 7] = taken
            self._calls += 1
            self._spent += taken
            if not self._calls & 63:
                self._is_quick, self._spent = self._spent < 64 * _QUICK_S and not self._is_slow(), 0.0

    def _is_slow(self) -> bool:
        return sum(self._recent) > _SLOW_S


class OneByOne:
    def __init__(self, turns: Turns, scorer: Any) -> None:
        self._turns, self._answer = turns, scorer.answer

    def __call__(self, job: Job) -> None:
        self._turns.do((job,), lambda: [(job, self._answer(job.head, job.body, job.connection.request_id))])
