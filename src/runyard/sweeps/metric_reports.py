"""What the children of a sweep have reported of its primary metric, read as it comes."""

from __future__ import annotations

from runyard.orchestrator.components import Rooms
from runyard.spec.sweep import SweepSpec, Trial
from runyard.sweeps.history import History
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_points


class Reports:
    def __init__(self, rooms: Rooms, spec: SweepSpec) -> None:
        self._rooms, self._metric, self._goal = rooms, spec.primary_metric, spec.goal
        self.of: dict[int, History] = {}  # by the number of the child

    def read(self, trial: Trial) -> History:
        known = self.of.setdefault(trial.number, History(self._goal))
        found = read_points(self._rooms.database, trial.run_id, self._metric, after=len(known))
        known.extend(map(float, found.values))
        return known

    def read_new(self, trial: Trial) -> range:
        """Of a child that still runs: the intervals that have come since the last time."""
        before = len(self.of.get(trial.number, ()))
        ingest(self._rooms.database, trial.run_id, self._rooms.folder(trial.run_id).journal)
        return range(before + 1, len(self.read(trial)) + 1)
