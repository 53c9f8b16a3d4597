"""Actions that the orchestrator performs after a state change. All of them are idempotent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    pass


@dataclass(frozen=True)
class Prepare(Action):
    pass


@dataclass(frozen=True)
class AbandonPreparation(Action):
    pass


@dataclass(frozen=True)
class Enqueue(Action):
    pass


@dataclass(frozen=True)
class Requeue(Action):
    """Release the run's share of its target and queue the run again."""


@dataclass(frozen=True)
class LeaveQueue(Action):
    """Also releases the run's share of its target."""


@dataclass(frozen=True)
class StartAgent(Action):
    pass


@dataclass(frozen=True)
class StopAgent(Action):
    pass


@dataclass(frozen=True)
class Watch(Action):
    """Monitor the agent of a run that survived a restart of the yard."""


@dataclass(frozen=True)
class Finalize(Action):
    pass
