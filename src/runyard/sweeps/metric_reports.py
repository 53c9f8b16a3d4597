"""Reads the primary metric of a sweep's children incrementally."""

from __future__ import annotations

import math

from runyard.orchestrator.components import Components
from runyard.spec.sweep import SweepSpec, Trial
from runyard.sweeps.history import History
from runyard.tracking.ingest import ingest
from runyard.tracking.metrics import read_points
from runyard.tracking.series import find_series


class MetricReports:
    def __init__(self, components: Components, spec: SweepSpec) -> None:
        self._components, self._metric, self._goal = components, spec.primary_metric, spec.goal
        self.histories: dict[int, History] = {}  # by child number

    def read(self, trial: Trial) -> History:
        history = self.histories.setdefault(trial.number, History(self._goal))
        points = read_points(self._components.database, trial.run_id, self._metric, after=len(history))
        history.extend(map(float, points.values))
        return history

    def read_new(self, trial: Trial) -> range:
        """Read a running child; the range of intervals that are new since the last call."""
        before = len(self.histories.get(trial.number, ()))
        ingest(self._components.database, trial.run_id, self._components.folder(trial.run_id).journal)
        return range(before + 1, len(self.read(trial)) + 1)

    def last(self, trial: Trial) -> float | None:
        """The last value of a child; None if it has no report, or the value is not finite."""
        with self._components.database.read() as connection:
            series = find_series(connection, trial.run_id, self._metric)
        point = None if series is None else series.last
        return point.number if point is not None and math.isfinite(point.number) else None
