"""Early termination policies. An interval is one value of the primary metric that the child logs."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import validate_count, validate_not_negative
from runyard.spec.sweep import Policy


class EarlyTerminationPolicy:
    """Base of the policies that cancel children before they end.

    Args:
        evaluation_interval: Apply the policy at every n-th value of the primary metric.
        delay_evaluation: Number of values before the policy is applied for the first time.
    """

    POLICY_NAME = ""

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        self.evaluation_interval = validate_count("evaluation_interval", evaluation_interval, 1)
        self.delay_evaluation = validate_count("delay_evaluation", delay_evaluation, 0)

    def to_json(self) -> dict[str, Any]:
        properties = {"evaluation_interval": self.evaluation_interval, "delay_evaluation": self.delay_evaluation}
        return {"name": self.POLICY_NAME, "properties": {**properties, **self._settings()}}

    def _settings(self) -> dict[str, Any]:
        return {}

    def _spec(self) -> Optional[Policy]:
        return Policy(self.POLICY_NAME, self.evaluation_interval, self.delay_evaluation, **self._settings())


class NoTerminationPolicy(EarlyTerminationPolicy):
    """Lets every child run to its end."""

    POLICY_NAME = "Default"

    def __init__(self) -> None:
        super().__init__()

    def _spec(self) -> None:
        return None


class BanditPolicy(EarlyTerminationPolicy):
    """Cancels a child whose best value is worse than the best child's at the same interval by more than the slack.

    Args:
        evaluation_interval: Apply the policy at every n-th value of the primary metric.
        slack_factor: Allowed ratio to the best child; 0.1 allows a tenth below it.
        slack_amount: Allowed difference from the best child; excludes ``slack_factor``.
        delay_evaluation: Number of values before the policy is applied for the first time.
    """

    POLICY_NAME = "Bandit"

    def __init__(
        self,
        evaluation_interval: int = 1,
        slack_factor: Optional[float] = None,
        slack_amount: Optional[float] = None,
        delay_evaluation: int = 0,
    ) -> None:
        super().__init__(evaluation_interval, delay_evaluation)
        if (slack_factor is None) == (slack_amount is None):
            raise HyperDriveConfigException(
                "BanditPolicy takes exactly one of slack_factor and slack_amount",
                hint="slack_factor=0.1 allows a tenth below the best; slack_amount=0.1 allows 0.1 below",
            )
        for name, value in (("slack_factor", slack_factor), ("slack_amount", slack_amount)):
            if value is not None:
                validate_not_negative(name, value)
        self.slack_factor, self.slack_amount = slack_factor, slack_amount

    def _settings(self) -> dict[str, Any]:
        if self.slack_factor is not None:
            return {"slack_factor": self.slack_factor}
        return {"slack_amount": self.slack_amount}


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Cancels a child whose best value is worse than the median of the running averages of all children."""

    POLICY_NAME = "MedianStopping"


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Cancels the given percentage of the worst children at each interval."""

    POLICY_NAME = "TruncationSelection"

    def __init__(self, truncation_percentage: int, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(evaluation_interval, delay_evaluation)
        self.truncation_percentage = validate_count("truncation_percentage", truncation_percentage, 1, 99)

    def _settings(self) -> dict[str, Any]:
        return {"truncation_percentage": self.truncation_percentage}


class HyperbandPolicy(EarlyTerminationPolicy):
    """Asynchronous successive halving (ASHA), and Hyperband with several brackets.

    Args:
        evaluation_interval: Number of values at the first evaluation.
        reduction_factor: The best 1/``reduction_factor`` of the children continue at each evaluation; the next one is
            after ``reduction_factor`` times as many values.
        brackets: With more than one, some children are evaluated later, so that slow starters are not canceled.
    """

    POLICY_NAME = "Hyperband"

    def __init__(self, evaluation_interval: int = 1, reduction_factor: int = 3, brackets: int = 1) -> None:
        super().__init__(evaluation_interval)
        self.reduction_factor = validate_count("reduction_factor", reduction_factor, 2)
        self.brackets = validate_count("brackets", brackets, 1)

    def _settings(self) -> dict[str, Any]:
        return {"reduction_factor": self.reduction_factor, "brackets": self.brackets}
