"""Applies the early termination policy of a sweep: which children to judge, and at which of their reports."""

from __future__ import annotations

from bisect import bisect_left

from runyard.spec.sweep import Policy, Trial
from runyard.sweeps.policies import COMPARES_SAME_INTERVAL, Histories, last_due, reason_to_stop


class EarlyStopping:
    """Judges a child at each of its reports.

    Policies that compare children at the same interval judge a child again when others reach that interval: otherwise
    a child that is one report ahead of all others, or is read first, would never be compared with any.
    """

    def __init__(self, policy: Policy, goal: str, reports: Histories) -> None:
        self._policy, self._goal, self._reports = policy, goal, reports
        self._last_comparison: dict[int, tuple[int, int]] = {}  # child -> (interval, number of children compared)
        self._lengths: list[int] = []

    def update(self) -> None:
        """Call before a round of judgments, after all new reports have been read."""
        self._lengths = sorted(map(len, self._reports.values()))

    def reason_to_stop(self, trial: Trial, new: range) -> str | None:
        """The reason to stop this child, with the report that triggered it; None if it may continue."""
        intervals = list(new)
        shared = self._shared_interval(trial.number)
        comparison = (shared, len(self._lengths) - bisect_left(self._lengths, shared))
        if shared and comparison != self._last_comparison.get(trial.number):
            self._last_comparison[trial.number] = comparison
            intervals = sorted({*intervals, shared})
        for interval in intervals:
            reason = reason_to_stop(self._policy, self._goal, self._reports, trial.number, interval, trial.bracket)
            if reason is not None:
                return f"stopped early by {self._policy.name} at report {interval}: {reason}"
        return None

    def _shared_interval(self, number: int) -> int:
        """The last interval that another child has reached too; 0 if there is none or the policy does not need it."""
        if self._policy.name not in COMPARES_SAME_INTERVAL or len(self._lengths) < 2:
            return 0
        length = len(self._reports.get(number, ()))
        longest_other = self._lengths[-2] if length == self._lengths[-1] else self._lengths[-1]
        return last_due(self._policy, min(length, longest_other))
