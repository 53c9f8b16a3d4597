"""The primary metric of one child run: best value and average after each report."""

from __future__ import annotations

import math
from collections.abc import Iterable

from runyard.spec.sweep import MAXIMIZE


class History:
    """Updated incrementally, because policies read the best and the average of thousands of children repeatedly."""

    def __init__(self, goal: str, values: Iterable[float] = ()) -> None:
        self._better = max if goal == MAXIMIZE else min
        self._bests: list[float] = []  # after each report; NaN before the first finite value
        self._sums: list[float] = []
        self.extend(values)

    def __len__(self) -> int:
        return len(self._bests)

    def extend(self, values: Iterable[float]) -> None:
        best = self._bests[-1] if self._bests else math.nan
        total = self._sums[-1] if self._sums else 0.0
        for value in values:
            if math.isfinite(value):  # a diverged value is never the best
                best = value if math.isnan(best) else self._better(best, value)
            total += value
            self._bests.append(best)
            self._sums.append(total)

    def truncate(self, reports: int) -> None:
        """Keep only the first ``reports`` reports."""
        del self._bests[reports:]
        del self._sums[reports:]

    @property
    def best(self) -> float | None:
        """None if no value is finite."""
        return self._bests[-1] if self._bests and not math.isnan(self._bests[-1]) else None

    def best_at(self, interval: int) -> float | None:
        """The best of the first ``interval`` reports; NaN if all of them exist and none is finite."""
        if not self._bests:
            return None
        best = self._bests[min(interval, len(self._bests)) - 1]
        return None if math.isnan(best) and len(self._bests) < interval else best

    def average_at(self, interval: int) -> float:
        return self._sums[interval - 1] / interval
