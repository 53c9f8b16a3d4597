"""Single-flight execution: concurrent requests for the same key share one computation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from runyard.environments.prepared import PreparationCanceled
from runyard.errors import EnvironmentException, RunyardException

T = TypeVar("T")


@dataclass
class Computation:
    """A running computation, for the threads that wait for it."""

    run_id: str
    done: threading.Event = field(default_factory=threading.Event)
    failure: RunyardException | None = None


class SingleFlight:
    def __init__(self) -> None:
        self.lock = threading.Lock()  # while it is held, no computation starts
        self._running: dict[str, Computation] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._running

    def run(
        self,
        key: str,
        run_id: str,
        lookup: Callable[[], T | None],
        compute: Callable[[], T],
        wait: Callable[[Computation], None],
    ) -> T:
        """Return the existing result, compute it, or wait for the thread that computes it.

        If that thread is canceled, one of the waiting threads takes over.

        Args:
            key: Identifies the result.
            run_id: The run that requests it.
            lookup: Returns an existing result, or None.
            compute: Computes the result.
            wait: Blocks until a computation of another thread is done.
        """
        while True:
            with self.lock:
                # looked up under the lock: a computation may have just finished
                result = lookup()
                if result is not None:
                    return result
                running = self._running.get(key)
                if running is None:
                    computation = self._running[key] = Computation(run_id)
            if running is not None:
                wait(running)
                if running.failure is not None and not isinstance(running.failure, PreparationCanceled):
                    raise _copy(running.failure)
                continue
            try:
                return compute()
            except RunyardException as error:
                computation.failure = error
                raise
            finally:
                with self.lock:
                    del self._running[key]
                computation.done.set()


def _copy(failure: RunyardException) -> EnvironmentException:
    """Copy a failure for another thread: raising one exception object in several threads mixes their tracebacks."""
    return EnvironmentException(failure.message, hint=failure.hint, inner_exception=failure, **failure.facts)
