"""Early termination policies, checked against hand-computed cases."""

from __future__ import annotations

import math

import pytest

from runyard.spec.sweep import MAXIMIZE, MINIMIZE, Policy, Trial
from runyard.sweeps.early_stopping import EarlyStopping
from runyard.sweeps.history import History
from runyard.sweeps.policies import is_due, last_due, reason_to_stop


def stopped(policy: Policy, reports: dict[int, list[float]], interval: int, goal: str = MAXIMIZE) -> set[int]:
    """The children that the policy would stop at this interval."""
    reported = [child for child, values in reports.items() if len(values) >= interval]
    histories = build_histories(reports, goal)
    return {child for child in reported if reason_to_stop(policy, goal, histories, child, interval)}


def build_histories(reports: dict[int, list[float]], goal: str = MAXIMIZE) -> dict[int, History]:
    return {child: History(goal, values) for child, values in reports.items()}


def test_a_policy_is_due_at_multiples_of_its_interval_after_the_delay() -> None:
    policy = Policy("Bandit", evaluation_interval=2, delay_evaluation=5, slack_factor=0.1)
    assert [n for n in range(1, 12) if is_due(policy, n)] == [6, 8, 10]


def test_bandit_keeps_children_within_the_slack_of_the_best_at_the_same_interval() -> None:
    # best at report 1 is 0.8: 0.8 / 1.1 = 0.7272…; later reports of child 3 only count for child 3
    reports = {0: [0.8], 1: [0.73], 2: [0.72], 3: [0.5, 0.99], 4: [0.5]}
    assert stopped(Policy("Bandit", slack_factor=0.1), reports, 1) == {2, 4}
    assert stopped(Policy("Bandit", slack_amount=0.1), reports, 1) == {4}
    assert stopped(Policy("Bandit", slack_amount=0.3), reports, 1) == set()


def test_bandit_counts_a_childs_best_so_far_not_its_last_report() -> None:
    reports = {0: [0.8, 0.9], 1: [0.89, 0.1]}
    assert stopped(Policy("Bandit", slack_factor=0.1), reports, 2) == set()


def test_bandit_stops_a_child_with_more_reports_than_a_better_one() -> None:
    ahead = {0: [0.9, 0.9], 1: [0.1, 0.1, 0.1, 0.1]}
    assert stopped(Policy("Bandit", slack_factor=0.1), ahead, 4) == {1}
    assert stopped(Policy("Bandit", slack_factor=0.1), {0: [0.9, 0.9], 1: [0.1, 0.1, 0.1, 0.9]}, 4) == set()


def test_bandit_minimizing_allows_best_times_one_plus_slack() -> None:
    reports = {0: [1.0], 1: [1.19], 2: [1.21]}
    assert stopped(Policy("Bandit", slack_factor=0.2), reports, 1, MINIMIZE) == {2}


@pytest.mark.parametrize(("goal", "values"), [(MAXIMIZE, [-1.0, -1.05, -5.0]), (MINIMIZE, [-5.0, -4.6, -1.0])])
def test_bandit_never_stops_the_best_child_of_a_negative_metric(goal: str, values: list[float]) -> None:
    reports = {child: [value] for child, value in enumerate(values)}
    assert stopped(Policy("Bandit", slack_factor=0.1), reports, 1, goal) == {2}


def test_a_child_that_reports_nan_is_the_worst() -> None:
    assert stopped(Policy("Bandit", slack_factor=0.5), {0: [0.5], 1: [math.nan]}, 1) == {1}


def test_median_stopping_compares_a_childs_best_with_the_median_of_running_averages() -> None:
    # running averages at report 2: 0.15, 0.35 and 0.55; then 0.5, 0.35 and 0.55
    reports = {0: [0.1, 0.2], 1: [0.3, 0.4], 2: [0.5, 0.6]}
    assert stopped(Policy("MedianStopping"), reports, 2) == {0}
    assert stopped(Policy("MedianStopping"), {0: [0.1, 0.9], 1: [0.3, 0.4], 2: [0.5, 0.6]}, 2) == {1}


def test_median_stopping_ignores_children_that_diverged() -> None:
    # the averages are 0.2, 0.5 and 0.6; a NaN in a sorted list makes its median arbitrary
    for index in range(4):
        values = [0.6, 0.2, 0.5]
        values.insert(index, math.nan)
        reports = {child: [value] for child, value in enumerate(values)}
        assert stopped(Policy("MedianStopping"), reports, 1) == {index, values.index(0.2)}


def test_median_stopping_needs_another_child_to_compare_with() -> None:
    assert stopped(Policy("MedianStopping"), {0: [0.1]}, 1) == set()


def test_truncation_selection_stops_the_lowest_percentage() -> None:
    reports = {child: [child / 10] for child in range(10)}
    assert stopped(Policy("TruncationSelection", truncation_percentage=20), reports, 1) == {0, 1}
    assert stopped(Policy("TruncationSelection", truncation_percentage=20), reports, 1, MINIMIZE) == {8, 9}
    # 20 % of four children is less than one of them
    few = {child: [child / 10] for child in range(4)}
    assert stopped(Policy("TruncationSelection", truncation_percentage=20), few, 1) == set()


def test_hyperband_keeps_the_best_third_and_judges_only_at_rungs() -> None:
    policy = Policy("Hyperband", evaluation_interval=2, reduction_factor=3)
    reports = {child: [child / 10] * 6 for child in range(6)}
    assert stopped(policy, reports, 1) == set()
    assert stopped(policy, reports, 2) == {0, 1, 2, 3}
    assert stopped(policy, reports, 4) == set()
    assert stopped(policy, reports, 6) == {0, 1, 2, 3}


def test_hyperband_does_not_stop_the_first_child_to_reach_a_rung() -> None:
    assert stopped(Policy("Hyperband", reduction_factor=3), {0: [0.1], 1: [0.9]}, 1) == set()


def test_a_later_bracket_has_its_first_rung_later() -> None:
    policy = Policy("Hyperband", reduction_factor=3, brackets=2)
    reports = build_histories({child: [child / 10] * 3 for child in range(6)})
    assert reason_to_stop(policy, MAXIMIZE, reports, 0, 1, bracket=1) is None
    assert reason_to_stop(policy, MAXIMIZE, reports, 0, 3, bracket=1) is not None


def test_the_reason_includes_the_values_compared() -> None:
    reason = reason_to_stop(Policy("Bandit", slack_factor=0.1), MAXIMIZE, build_histories({0: [0.9], 1: [0.5]}), 1, 1)
    assert reason is not None
    assert "0.5" in reason
    assert "0.9" in reason
    assert "slack_factor=0.1" in reason


@pytest.mark.parametrize("goal", [MAXIMIZE, MINIMIZE])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_child_that_diverged_is_the_worst_for_every_policy(value: float, goal: str) -> None:
    reports = {0: [1.0], 1: [value], 2: [1.05]}
    for policy in (
        Policy("Bandit", slack_factor=0.1),
        Policy("Bandit", slack_amount=0.1),
        Policy("TruncationSelection", truncation_percentage=34),
    ):
        assert stopped(policy, reports, 1, goal) == {1}
    assert 1 in stopped(Policy("MedianStopping"), reports, 1, goal)
    assert 1 in stopped(Policy("Hyperband", reduction_factor=3), reports, 1, goal)


def test_children_with_equal_values_are_treated_equally() -> None:
    equal = {child: [0.1] for child in range(6)}
    assert stopped(Policy("Hyperband", reduction_factor=3), equal, 1) == set()
    assert stopped(Policy("TruncationSelection", truncation_percentage=20), equal, 1) == set()
    two_lead = {0: [0.9], 1: [0.1], 2: [0.9], 3: [0.1], 4: [0.9], 5: [0.2]}
    assert stopped(Policy("Hyperband", reduction_factor=3), two_lead, 1) == {1, 3, 5}


def test_the_last_interval_at_which_a_policy_was_due() -> None:
    policy = Policy("MedianStopping", evaluation_interval=3, delay_evaluation=5)
    assert [last_due(policy, n) for n in (2, 5, 6, 8, 9, 10)] == [0, 0, 6, 6, 9, 9]


@pytest.mark.parametrize("policy", [Policy("MedianStopping"), Policy("TruncationSelection", truncation_percentage=50)])
@pytest.mark.parametrize("bad", [0, 1])
def test_a_poor_child_ahead_of_the_others_is_stopped_when_they_catch_up(policy: Policy, bad: int) -> None:
    """Independent of the order in which the children are read."""
    trials = {number: Trial(number, f"s_{number}", {}) for number in (0, 1)}
    reports: dict[int, History] = {}
    judge = EarlyStopping(policy, MAXIMIZE, reports)
    reports[bad] = History(MAXIMIZE, [0.1, 0.1, 0.1])
    judge.update()
    assert judge.reason_to_stop(trials[bad], range(1, 4)) is None
    reports[1 - bad] = History(MAXIMIZE, [0.9, 0.9])
    judge.update()
    reason = judge.reason_to_stop(trials[bad], range(4, 4))
    assert reason is not None
    assert reason.startswith(f"stopped early by {policy.name} at report 2: ")
    assert judge.reason_to_stop(trials[1 - bad], range(1, 3)) is None


def test_a_child_is_not_judged_again_without_new_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = build_histories({child: [float(child)] * 2 for child in range(3)})
    judge = EarlyStopping(Policy("MedianStopping"), MAXIMIZE, reports)
    judged: list[int] = []
    monkeypatch.setattr("runyard.sweeps.early_stopping.reason_to_stop", lambda *args: judged.append(args[4]))
    for _ in range(5):
        judge.update()
        judge.reason_to_stop(Trial(2, "s_2", {}), range(3, 3))
    assert judged == [2]


@pytest.mark.parametrize("policy", [Policy("MedianStopping"), Policy("TruncationSelection", truncation_percentage=50)])
def test_a_child_is_not_stopped_for_an_old_value(policy: Policy) -> None:
    reports = build_histories({0: [0.1] + [0.9] * 40, 1: [0.2]})
    judge = EarlyStopping(policy, MAXIMIZE, reports)
    judge.update()
    assert judge.reason_to_stop(Trial(0, "s_0", {}), range(42, 42)) is None
    assert judge.reason_to_stop(Trial(1, "s_1", {}), range(1, 2)) is None


def test_history_returns_best_and_average_after_each_report() -> None:
    history = History(MINIMIZE, [math.nan, 3.0, math.inf, 1.0, 2.0])
    assert [history.best_at(n) for n in (2, 3, 4, 5, 9)] == [3.0, 3.0, 1.0, 1.0, 1.0]
    assert math.isnan(history.best_at(1) or 0.0)
    assert (len(history), history.best) == (5, 1.0)
    history.truncate(2)
    assert (len(history), history.best) == (2, 3.0)
    assert (History(MAXIMIZE).best, History(MAXIMIZE).best_at(1), len(History(MAXIMIZE))) == (None, None, 0)
    assert History(MAXIMIZE, [1.0, 2.0, 6.0]).average_at(3) == 3.0
