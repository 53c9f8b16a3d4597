"""What the children of a sweep have reported of its primary metric, each in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runyard.orchestrator.rooms import Rooms
from runyard.spec.sweep import MAXIMIZE, SweepSpec, Trial
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_points


class Reports:
    def __init__(self, rooms: Rooms, spec: SweepSpec) -> None:
        self._rooms, self._metric, self._goal = rooms, spec.primary_metric, spec.goal
        self.of: dict[int, list[float]] = {}  # by the number of the child

    def read(self, trial: Trial) -> list[float]:
        known = self.of.setdefault(trial.number, [])
        found = read_points(self._rooms.database, trial.run_id, self._metric, after=len(known))
        known.extend(float(value) for value in found.values)
        return known

    def read_new(self, trial: Trial) -> range:
        """Of a child that still runs: the intervals that have come since the last time."""
        before = len(self.of.get(trial.number, ()))
        ingest(self._rooms.database, trial.run_id, self._rooms.folder(trial.run_id).journal)
        return range(before + 1, len(self.read(trial)) + 1)

    def best(self, number: int) -> float | None:
        return best(self.of.get(number, ()), self._goal)


def best(values: Sequence[float], goal: str) -> float | None:
    """None where there is no number among them: one that diverged is not better than all others."""
    numbers = [value for value in values if math.isfinite(value)]
    if not numbers:
        return None
    return max(numbers) if goal == MAXIMIZE else min(numbers)
