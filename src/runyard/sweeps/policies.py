"""Early termination policies: pure decisions on the values that the children have reported so far.

An interval is one report of the primary metric. A policy judges a child when its number of reports is a multiple of
``evaluation_interval`` and at least ``delay_evaluation``. It compares the child with the others *at the same interval*,
so that a child which started later is not compared with values that needed more reports. The child itself is
represented by its best value so far, so an early bad value alone does not stop it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Optional

from runyard.spec.sweep import MAXIMIZE, Policy
from runyard.sweeps.history import History

Histories = Mapping[int, History]  # by child number


def reason_to_stop(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int = 0
) -> Optional[str]:
    """The reason to stop this child at this interval, for display; None if it may continue."""
    if not is_due(policy, interval):
        return None
    return _POLICIES[policy.name](policy, goal, reports, child, interval, bracket)


def is_due(policy: Policy, interval: int) -> bool:
    if policy.name == "Hyperband":  # it defines its own rungs
        return interval >= 1
    return interval >= max(1, policy.delay_evaluation) and interval % policy.evaluation_interval == 0


def last_due(policy: Policy, interval: int) -> int:
    """The last interval up to this one at which the policy judges; 0 if there is none. Not for Hyperband."""
    due = interval - interval % policy.evaluation_interval
    return due if is_due(policy, due) else 0


def _bandit(policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int) -> Optional[str]:
    value = _best_so_far(reports[child])
    # includes children with fewer reports: a better value in fewer reports is better. Otherwise a bad child that is
    # always one report ahead, or outlasts a good one that has ended, would never be compared
    best = _best_of((history.best_at(interval) for history in reports.values()), goal)
    if value is None or best is None:
        return None
    # |best|: the slack of a negative metric would otherwise have the wrong sign and stop the best child itself
    if policy.slack_factor is not None:
        share = policy.slack_factor / (1 + policy.slack_factor) if goal == MAXIMIZE else policy.slack_factor
        slack, setting = abs(best) * share, f"slack_factor={policy.slack_factor:g}"
    else:
        slack, setting = policy.slack_amount or 0.0, f"slack_amount={policy.slack_amount:g}"
    limit = best - slack if goal == MAXIMIZE else best + slack
    if not _is_worse(value, limit, goal):
        return None
    return f"its best value {value:.6g} is worse than the limit {limit:.6g}; the best child had {best:.6g} ({setting})"


def _median_stopping(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int
) -> Optional[str]:
    all_averages = [history.average_at(interval) for history in reports.values() if len(history) >= interval]
    averages = [average for average in all_averages if math.isfinite(average)]  # NaN would make the median arbitrary
    value = _best_so_far(reports[child])
    if value is None or not averages:
        return None
    middle = median(averages)
    # the average of three times 0.1 is not 0.1: a rounding error would make a child worse than itself
    if math.isclose(value, middle, rel_tol=1e-9) or not _is_worse(value, middle, goal):
        return None
    return f"its best value {value:.6g} is worse than {middle:.6g}, the median of the running averages"


def _truncation_selection(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int
) -> Optional[str]:
    values = {number: history.best_at(interval) for number, history in reports.items() if len(history) >= interval}
    values[child] = _best_so_far(reports[child])
    ranked = sorted(values, key=lambda number: _rank(values[number], goal))  # worst first
    truncated = int(len(ranked) * policy.truncation_percentage / 100)
    threshold = _rank(values[ranked[truncated]], goal)
    # by value, not by position: of several equal children, the first is not worse
    if _rank(values[child], goal) >= threshold:
        return None
    position = f"{ranked.index(child) + 1} of {len(ranked)} from the bottom"
    return (
        f"its best value {values[child]:.6g} ranks {position}; the lowest {policy.truncation_percentage} % are stopped"
    )


def _hyperband(policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int) -> Optional[str]:
    """Asynchronous successive halving: at each rung, only the best 1/reduction_factor of the children continue."""
    rung = max(1, policy.delay_evaluation) * policy.evaluation_interval * policy.reduction_factor**bracket
    while rung < interval:
        rung *= policy.reduction_factor
    if rung != interval:
        return None
    value = _best_so_far(reports[child])
    values = [
        (number, value if number == child else history.best_at(interval))
        for number, history in reports.items()
        if len(history) >= interval
    ]
    if len(values) < policy.reduction_factor:  # too few to compare: the first to arrive must not be stopped for it
        return None
    ranked = sorted(values, key=lambda pair: _rank(pair[1], goal), reverse=True)
    promoted = max(1, len(ranked) // policy.reduction_factor)
    if _rank(value, goal) >= _rank(ranked[promoted - 1][1], goal):  # a tie with the last promoted child continues
        return None
    position = [number for number, _ in ranked].index(child) + 1
    return f"its best value {value:.6g} ranks {position} of {len(ranked)} at report {interval}; {promoted} may continue"


def _best_so_far(history: History) -> Optional[float]:
    return history.best_at(len(history))


def _best_of(values: Iterable[Optional[float]], goal: str) -> Optional[float]:
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if not numbers:
        return None
    return max(numbers) if goal == MAXIMIZE else min(numbers)


def _is_worse(value: float, limit: float, goal: str) -> bool:
    """NaN is worse than any number."""
    if math.isnan(value):
        return True
    return value < limit if goal == MAXIMIZE else value > limit


def _rank(value: Optional[float], goal: str) -> float:
    if value is None or math.isnan(value):
        return -math.inf
    return value if goal == MAXIMIZE else -value


_POLICIES: dict[str, Callable[[Policy, str, Histories, int, int, int], Optional[str]]] = {
    "Bandit": _bandit,
    "MedianStopping": _median_stopping,
    "TruncationSelection": _truncation_selection,
    "Hyperband": _hyperband,
}
NAMES = tuple(_POLICIES)
COMPARES_SAME_INTERVAL = ("MedianStopping", "TruncationSelection")
