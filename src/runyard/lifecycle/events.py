"""What happened to a run."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.lifecycle.state import End


@dataclass(frozen=True)
class Event:
    pass


@dataclass(frozen=True)
class Submitted(Event):
    pass


@dataclass(frozen=True)
class Begun(Event):
    """An interactive run or a child run was opened by its own process."""


@dataclass(frozen=True)
class Prepared(Event):
    """The environment is there."""


@dataclass(frozen=True)
class PreparationFailed(Event):
    end: End


@dataclass(frozen=True)
class Placed(Event):
    """The queue gave the run its share of the target."""


@dataclass(frozen=True)
class Waiting(Event):
    """The target has a scheduler of its own, which lets the run wait: there is no agent yet."""


@dataclass(frozen=True)
class LaunchFailed(Event):
    end: End
    attempt: int = 0  # 0: the one that is under way


@dataclass(frozen=True)
class ScriptStarted(Event):
    attempt: int = 0  # 0: the one that is under way


@dataclass(frozen=True)
class ScriptEnded(Event):
    end: End
    attempt: int = 0  # 0: the one that is under way


@dataclass(frozen=True)
class AgentLost(Event):
    """The agent is gone without a word about its processes, which have been stopped since."""

    end: End
    attempt: int = 0  # 0: the one that is under way


@dataclass(frozen=True)
class Finalized(Event):
    """Metrics are read, outputs are kept."""


@dataclass(frozen=True)
class CancelRequested(Event):
    message: str = ""  # why, where it was not a person's wish


@dataclass(frozen=True)
class ChildrenEnded(Event):
    """All that a sweep had to do is done."""

    end: End


@dataclass(frozen=True)
class MarkedComplete(Event):
    pass


@dataclass(frozen=True)
class MarkedFailed(Event):
    end: End


@dataclass(frozen=True)
class Noted(Event):
    """Something to tell about the run that changes nothing in its life."""


@dataclass(frozen=True)
class YardRestarted(Event):
    """The yard came back and found this run not ended."""
