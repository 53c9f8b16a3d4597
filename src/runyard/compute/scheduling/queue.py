"""What every queue of a target can do. A run asks, is placed in its turn, and leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runyard.spec.resources import Resources


@dataclass(frozen=True)
class Placement:
    run_id: str
    gpus: tuple[int, ...] = ()
    nodes: tuple[int, ...] = (0,)


class Queue(Protocol):
    """First come, first served. May be used from any thread; each verb may be said twice."""

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """What the run will really be given, with a warning for each difference; raises for what can never start."""

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        """Join the line: at its end, or before those of a later ``turn``, who were only prepared faster."""

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        """A run that a former yard placed, and that still runs: it holds its share without having to ask."""

    def leave(self, run_id: str) -> None: ...

    def place(self) -> list[Placement]:
        """Those whose turn has come. What they asked for is theirs until they leave."""

    def place_if_first(self, run_id: str) -> bool:
        """Whether this run, having just asked, may start at once."""

    def placement(self, run_id: str) -> Placement | None: ...

    def runs(self) -> list[str]:
        """Who waits or was placed here."""

    def reason(self, run_id: str) -> str:
        """Why it has not started, in a person's words; empty when it is not waiting."""


class Refusing:
    """The queue of a target whose own configuration is wrong: whoever wants to use it is told."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        raise self._error

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        raise self._error

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        raise self._error

    def leave(self, run_id: str) -> None:
        """Nobody came in."""

    def place(self) -> list[Placement]:
        return []

    def place_if_first(self, run_id: str) -> bool:
        return False

    def placement(self, run_id: str) -> Placement | None:
        return None

    def runs(self) -> list[str]:
        return []

    def reason(self, run_id: str) -> str:
        return ""
