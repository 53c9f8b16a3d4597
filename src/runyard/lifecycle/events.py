"""Events that change the state of a run."""

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
class Opened(Event):
    """An interactive run, a child run or a sweep was opened; no agent is started for it."""


@dataclass(frozen=True)
class Prepared(Event):
    """The environment is ready."""


@dataclass(frozen=True)
class PreparationFailed(Event):
    end: End


@dataclass(frozen=True)
class Placed(Event):
    """The queue allocated a share of the target to the run."""


@dataclass(frozen=True)
class Waiting(Event):
    """The run waits in the queue of the target's own scheduler; it has no agent yet."""


@dataclass(frozen=True)
class LaunchFailed(Event):
    end: End
    attempt: int = 0  # 0: the current one


@dataclass(frozen=True)
class ScriptStarted(Event):
    attempt: int = 0  # 0: the current one


@dataclass(frozen=True)
class ScriptEnded(Event):
    end: End
    attempt: int = 0  # 0: the current one


@dataclass(frozen=True)
class AgentLost(Event):
    """The agent died without reporting the end of its processes, which have been stopped since."""

    end: End
    attempt: int = 0  # 0: the current one


@dataclass(frozen=True)
class Finalized(Event):
    """All metrics are ingested and all outputs are stored."""


@dataclass(frozen=True)
class CancelRequested(Event):
    message: str = ""  # the reason, if it was not requested by a user


@dataclass(frozen=True)
class ChildrenEnded(Event):
    """A sweep has finished all of its child runs."""

    end: End


@dataclass(frozen=True)
class MarkedComplete(Event):
    pass


@dataclass(frozen=True)
class MarkedFailed(Event):
    end: End


@dataclass(frozen=True)
class Resumed(Event):
    """A tracking client continues a run that has ended."""


@dataclass(frozen=True)
class DetailsChanged(Event):
    """Warnings or the current phase changed; the state stays the same."""


@dataclass(frozen=True)
class YardRestarted(Event):
    """The yard was restarted, and this run has not ended."""
