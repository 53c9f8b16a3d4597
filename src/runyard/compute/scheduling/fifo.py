"""The waiting runs of a queue in their order. The cost of an operation does not grow with the length."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from runyard.spec.resources import Resources

_Ticket = tuple[int, str]  # turn, run id


class Fifo:
    def __init__(self) -> None:
        self._next_turn = 0
        self._tickets: list[_Ticket] = []  # sorted
        self._entries: dict[str, tuple[_Ticket, Resources]] = {}

    def add(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """Append the run, or insert it before those with a later ``turn``."""
        number = self._next_turn if turn is None else turn
        self._next_turn = max(self._next_turn, number + 1)
        ticket = (number, run_id)  # with the id: two runs of one turn must not replace each other
        insort(self._tickets, ticket)
        self._entries[run_id] = (ticket, resources)

    def remove(self, run_id: str) -> None:
        ticket, _ = self._entries.pop(run_id, (None, None))
        if ticket is not None:
            del self._tickets[bisect_left(self._tickets, ticket)]

    @property
    def first(self) -> tuple[str, Resources] | None:
        if not self._tickets:
            return None
        run_id = self._tickets[0][1]
        return run_id, self._entries[run_id][1]

    def resources(self, run_id: str) -> Resources:
        return self._entries[run_id][1]

    def position(self, run_id: str) -> str:
        return f"position {bisect_left(self._tickets, self._entries[run_id][0]) + 1} of {len(self._tickets)}"

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._entries

    def __iter__(self) -> Iterator[str]:
        return (run_id for _, run_id in self._tickets)
