"""When a child is ended before its time. An interval is one report of the primary metric by the child."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import not_negative, whole
from runyard.spec.sweep import Policy


class EarlyTerminationPolicy:
    POLICY_NAME = ""

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        self.evaluation_interval = whole("evaluation_interval", evaluation_interval, 1)
        self.delay_evaluation = whole("delay_evaluation", delay_evaluation, 0)

    def to_json(self) -> dict[str, Any]:
        properties = {"evaluation_interval": self.evaluation_interval, "delay_evaluation": self.delay_evaluation}
        return {"name": self.POLICY_NAME, "properties": {**properties, **self._own()}}

    def _own(self) -> dict[str, Any]:
        return {}

    def _spec(self) -> Optional[Policy]:
        return Policy(self.POLICY_NAME, self.evaluation_interval, self.delay_evaluation, **self._own())


class NoTerminationPolicy(EarlyTerminationPolicy):
    POLICY_NAME = "Default"

    def __init__(self) -> None:
        super().__init__()

    def _spec(self) -> None:
        return None


class BanditPolicy(EarlyTerminationPolicy):
    """Ends a child whose best is further from the best child's at the same interval than the slack allows."""

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
                not_negative(name, value)
        self.slack_factor, self.slack_amount = slack_factor, slack_amount

    def _own(self) -> dict[str, Any]:
        if self.slack_factor is not None:
            return {"slack_factor": self.slack_factor}
        return {"slack_amount": self.slack_amount}


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Ends a child whose best is worse than the median of all children's running averages."""

    POLICY_NAME = "MedianStopping"


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Ends the given percentage of children, the lowest ones, at each interval."""

    POLICY_NAME = "TruncationSelection"

    def __init__(self, truncation_percentage: int, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(evaluation_interval, delay_evaluation)
        self.truncation_percentage = whole("truncation_percentage", truncation_percentage, 1, 99)

    def _own(self) -> dict[str, Any]:
        return {"truncation_percentage": self.truncation_percentage}


class HyperbandPolicy(EarlyTerminationPolicy):
    """Asynchronous successive halving (ASHA): at ``evaluation_interval`` reports, and then at each ``reduction_factor``
    times as many, only the best 1/``reduction_factor`` of those that came there go on. With several ``brackets`` every
    second, third … child is first judged later, so that slow starters have a chance too (Hyperband)."""

    POLICY_NAME = "Hyperband"

    def __init__(self, evaluation_interval: int = 1, reduction_factor: int = 3, brackets: int = 1) -> None:
        super().__init__(evaluation_interval)
        self.reduction_factor = whole("reduction_factor", reduction_factor, 2)
        self.brackets = whole("brackets", brackets, 1)

    def _own(self) -> dict[str, Any]:
        return {"reduction_factor": self.reduction_factor, "brackets": self.brackets}
