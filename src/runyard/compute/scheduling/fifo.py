"""Who waits for a place, in order. What a verb costs does not grow with the length of the line."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from runyard.spec.resources import Resources

_Ticket = tuple[int, str]  # a turn, and whose it is


class Line:
    def __init__(self) -> None:
        self._next = 0
        self._tickets: list[_Ticket] = []  # in order; a ticket finds its place by bisection
        self._asked: dict[str, tuple[_Ticket, Resources]] = {}

    def join(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """At the end, or before those of a later ``turn``."""
        number = self._next if turn is None else turn
        self._next = max(self._next, number + 1)
        ticket = (number, run_id)  # two of one turn would else take each other's place, and one be forgotten
        insort(self._tickets, ticket)
        self._asked[run_id] = (ticket, resources)

    def leave(self, run_id: str) -> None:
        ticket, _ = self._asked.pop(run_id, (None, None))
        if ticket is not None:
            del self._tickets[bisect_left(self._tickets, ticket)]

    @property
    def first(self) -> tuple[str, Resources] | None:
        if not self._tickets:
            return None
        run_id = self._tickets[0][1]
        return run_id, self._asked[run_id][1]

    def asked(self, run_id: str) -> Resources:
        return self._asked[run_id][1]

    def position(self, run_id: str) -> str:
        return f"position {bisect_left(self._tickets, self._asked[run_id][0]) + 1} of {len(self._tickets)}"

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._asked

    def __iter__(self) -> Iterator[str]:
        return (run_id for _, run_id in self._tickets)
