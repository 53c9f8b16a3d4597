"""How one child stood after each of its reports of the primary metric."""

from __future__ import annotations

import math
from collections.abc import Iterable

from runyard.spec.sweep import MAXIMIZE


class History:
    """Kept up as reports come: policies ask for the best and the average of thousands of children again and again."""

    def __init__(self, goal: str, values: Iterable[float] = ()) -> None:
        self._better = max if goal == MAXIMIZE else min
        self.last: float | None = None  # None: there is none, or it is no number
        self._bests: list[float] = []  # after each report; not a number as long as there was none
        self._sums: list[float] = []
        self.extend(values)

    def __len__(self) -> int:
        return len(self._bests)

    def extend(self, values: Iterable[float]) -> None:
        best = self._bests[-1] if self._bests else math.nan
        total = self._sums[-1] if self._sums else 0.0
        for value in values:
            if math.isfinite(value):  # one that diverged is not the best
                best = value if math.isnan(best) else self._better(best, value)
            self.last = value if math.isfinite(value) else None
            total += value
            self._bests.append(best)
            self._sums.append(total)

    def cut(self, reports: int) -> None:
        """Only the first of them count."""
        del self._bests[reports:]
        del self._sums[reports:]

    @property
    def best(self) -> float | None:
        """None where there is no number among them."""
        return self._bests[-1] if self._bests and not math.isnan(self._bests[-1]) else None

    def best_at(self, interval: int) -> float | None:
        """The best of the first reports, however few there are; not a number: it came as far without one."""
        if not self._bests:
            return None
        found = self._bests[min(interval, len(self._bests)) - 1]
        return None if math.isnan(found) and len(self._bests) < interval else found

    def average_at(self, interval: int) -> float:
        return self._sums[interval - 1] / interval
