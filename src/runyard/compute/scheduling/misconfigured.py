"""The placement strategy of a target whose configuration is wrong: using it raises the reason."""

from __future__ import annotations

from runyard.compute.scheduling.queue import Placement, PlacementStrategy
from runyard.spec.resources import Resources


class Misconfigured(PlacementStrategy):
    def __init__(self, error: Exception) -> None:
        self._error = error

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        raise self._error

    def choose(self, run_id: str, resources: Resources) -> None:
        return None

    def reserve(self, placement: Placement, resources: Resources) -> None:
        raise self._error

    def release(self, run_id: str) -> None:
        """No run was placed."""

    def missing(self, resources: Resources) -> str:
        return str(self._error)

    def resize(self, nodes: int) -> None:
        """The new size applies when the configuration is correct again."""
