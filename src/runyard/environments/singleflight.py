"""What many ask for at once is done once: the first does it, the others wait for how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from runyard.environments.prepared import PreparationAbandoned
from runyard.errors import EnvironmentException, RunyardException

T = TypeVar("T")


@dataclass
class Flight:
    """One on its way, and how it ended for those who wait for it."""

    run_id: str
    done: threading.Event = field(default_factory=threading.Event)
    failure: RunyardException | None = None


class Flights:
    def __init__(self) -> None:
        self.lock = threading.Lock()  # held by whoever must know that none begins meanwhile
        self._flights: dict[str, Flight] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._flights

    def once(
        self,
        key: str,
        run_id: str,
        known: Callable[[], T | None],
        make: Callable[[], T],
        wait: Callable[[Flight], None],
    ) -> T:
        """What is known, made, or made by another. When that one was cancelled, one of those who wait takes over."""
        while True:
            with self.lock:
                # looked at again under the lock: it may have been finished just before
                found = known()
                if found is not None:
                    return found
                flight = self._flights.get(key)
                mine = flight is None
                if flight is None:
                    flight = self._flights[key] = Flight(run_id)
            if not mine:
                wait(flight)
                if flight.failure is not None and not isinstance(flight.failure, PreparationAbandoned):
                    raise _same(flight.failure)
                continue
            try:
                return make()
            except RunyardException as error:
                flight.failure = error
                raise
            finally:
                with self.lock:
                    del self._flights[key]
                flight.done.set()


def _same(failure: RunyardException) -> EnvironmentException:
    """The failure again for another run: one exception object raised in many threads would mix their tracebacks."""
    return EnvironmentException(failure.message, hint=failure.hint, inner_exception=failure, **failure.facts)
