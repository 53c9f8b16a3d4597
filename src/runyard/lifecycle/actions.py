"""What the orchestrator is to do next. Doing one twice is safe."""

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
    """Give back what the run held of its target, and ask again."""


@dataclass(frozen=True)
class LeaveQueue(Action):
    """Also gives back what the run held of its target."""


@dataclass(frozen=True)
class StartAgent(Action):
    pass


@dataclass(frozen=True)
class StopAgent(Action):
    pass


@dataclass(frozen=True)
class Watch(Action):
    """Keep an eye on the agent of a run that was found alive."""


@dataclass(frozen=True)
class Finalize(Action):
    pass
