"""When the children of a sweep are judged by its policy, and at which of their reports."""

from __future__ import annotations

from bisect import bisect_left

from runyard.spec.sweep import Policy, Trial
from runyard.sweeps.policies import COMPARE_WHO_CAME_AS_FAR, Histories, last_due, reason_to_stop


class Judge:
    """A child is judged at each of its reports. Where a policy compares those that came as far, it is judged again when
    others come there too: whoever is a report ahead of all, or is read first, would never be compared with anybody."""

    def __init__(self, policy: Policy, goal: str, reports: Histories) -> None:
        self._policy, self._goal, self._reports = policy, goal, reports
        self._company: dict[int, tuple[int, int]] = {}  # the interval at which a child was judged last, with how many
        self._lengths: list[int] = []

    def look(self) -> None:
        """Before a round of judgements, when all reports are read."""
        self._lengths = sorted(map(len, self._reports.values()))

    def verdict(self, trial: Trial, new: range) -> str | None:
        """Why the child is to end, at which report; None: it may go on."""
        intervals = list(new)
        met = self._interval_with_company(trial.number)
        company = (met, len(self._lengths) - bisect_left(self._lengths, met))
        if met and company != self._company.get(trial.number):
            self._company[trial.number] = company
            intervals = sorted({*intervals, met})
        for interval in intervals:
            why = reason_to_stop(self._policy, self._goal, self._reports, trial.number, interval, trial.bracket)
            if why is not None:
                return f"stopped early by {self._policy.name} at report {interval}: {why}"
        return None

    def _interval_with_company(self, number: int) -> int:
        """The last one at which it can be compared with another child; 0: there is none, or the policy needs none."""
        if self._policy.name not in COMPARE_WHO_CAME_AS_FAR or len(self._lengths) < 2:
            return 0
        mine = len(self._reports.get(number, ()))
        others = self._lengths[-2] if mine == self._lengths[-1] else self._lengths[-1]
        return last_due(self._policy, min(mine, others))
