"""Which child is to end early. Pure decisions on what the children have reported so far.

An interval is one report of the primary metric. A policy looks at a child when its number of reports is a multiple of
``evaluation_interval`` and at least ``delay_evaluation``; it then compares the child with the others *at the same
interval*, so that one which started later is not judged by what others reached in more reports. What counts for the
child itself is its best so far: nobody is ended for what it was long ago.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Optional

from runyard.spec.sweep import MAXIMIZE, Policy
from runyard.sweeps.history import History

Histories = Mapping[int, History]  # by the number of the child


def reason_to_stop(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int = 0
) -> Optional[str]:
    """Why this child should end at this interval, in a person's words; None: it may go on."""
    if not is_due(policy, interval):
        return None
    return _POLICIES[policy.name](policy, goal, reports, child, interval, bracket)


def is_due(policy: Policy, interval: int) -> bool:
    if policy.name == "Hyperband":  # it has rungs of its own
        return interval >= 1
    return interval >= max(1, policy.delay_evaluation) and interval % policy.evaluation_interval == 0


def last_due(policy: Policy, interval: int) -> int:
    """The last interval up to this one at which a policy without rungs looks; 0: none."""
    found = interval - interval % policy.evaluation_interval
    return found if is_due(policy, found) else 0


def _bandit(policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int) -> Optional[str]:
    mine = _so_far(reports[child])
    # also of those that have not come this far: who is better in fewer reports is better. Without them a bad child that
    # is always a report ahead, or runs longer than a good one that has ended, was never compared with anybody
    best = _best_of((one.best_at(interval) for one in reports.values()), goal)
    if mine is None or best is None:
        return None
    # |best|, or the slack of a negative metric would point the wrong way and stop the best child itself
    if policy.slack_factor is not None:
        share = policy.slack_factor / (1 + policy.slack_factor) if goal == MAXIMIZE else policy.slack_factor
        slack, said = abs(best) * share, f"slack_factor={policy.slack_factor:g}"
    else:
        slack, said = policy.slack_amount or 0.0, f"slack_amount={policy.slack_amount:g}"
    limit = best - slack if goal == MAXIMIZE else best + slack
    if not _is_worse(mine, limit, goal):
        return None
    return f"its best, {mine:.6g}, is beyond {limit:.6g}: the best child had {best:.6g} by then ({said})"


def _median_stopping(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int
) -> Optional[str]:
    all_averages = [one.average_at(interval) for one in reports.values() if len(one) >= interval]
    averages = [one for one in all_averages if math.isfinite(one)]  # a median among others depends on their order
    mine = _so_far(reports[child])
    if mine is None or not averages:
        return None
    middle = median(averages)
    # three times 0.1 are not 0.1 on average: by a rounding error a child would be worse than itself
    if math.isclose(mine, middle, rel_tol=1e-9) or not _is_worse(mine, middle, goal):
        return None
    return f"its best, {mine:.6g}, is worse than {middle:.6g}, the median of the running averages"


def _truncation_selection(
    policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int
) -> Optional[str]:
    there = {number: one.best_at(interval) for number, one in reports.items() if len(one) >= interval}
    there[child] = _so_far(reports[child])
    ranked = sorted(there, key=lambda number: _rank(there[number], goal))  # the worst first
    doomed = int(len(ranked) * policy.truncation_percentage / 100)
    spared = _rank(there[ranked[doomed]], goal)
    # by its value, not by its place: of several that are equal, the one that came first is no worse
    if _rank(there[child], goal) >= spared:
        return None
    place = f"{ranked.index(child) + 1} of {len(ranked)} from below"
    return f"its best, {there[child]:.6g}, is number {place}: the lowest {policy.truncation_percentage} % end"


def _hyperband(policy: Policy, goal: str, reports: Histories, child: int, interval: int, bracket: int) -> Optional[str]:
    """Asynchronous successive halving: at each rung only the best 1/reduction_factor of those that came there go on."""
    rung = max(1, policy.delay_evaluation) * policy.evaluation_interval * policy.reduction_factor**bracket
    while rung < interval:
        rung *= policy.reduction_factor
    if rung != interval:
        return None
    mine = _so_far(reports[child])
    there = [
        (number, mine if number == child else one.best_at(interval))
        for number, one in reports.items()
        if len(one) >= interval
    ]
    if len(there) < policy.reduction_factor:  # too few to compare: nobody is sent home for having come first
        return None
    ranked = sorted(there, key=lambda pair: _rank(pair[1], goal), reverse=True)
    kept = max(1, len(ranked) // policy.reduction_factor)
    if _rank(mine, goal) >= _rank(ranked[kept - 1][1], goal):  # also those that are as good as the last who may
        return None
    place = [number for number, _ in ranked].index(child) + 1
    return f"its best, {mine:.6g}, is number {place} of {len(ranked)} at report {interval}: {kept} may go on"


def _so_far(history: History) -> Optional[float]:
    return history.best_at(len(history))


def _best_of(values: Iterable[Optional[float]], goal: str) -> Optional[float]:
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if not numbers:
        return None
    return max(numbers) if goal == MAXIMIZE else min(numbers)


def _is_worse(value: float, limit: float, goal: str) -> bool:
    """What is not a number is worse than any."""
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
COMPARE_WHO_CAME_AS_FAR = ("MedianStopping", "TruncationSelection")
