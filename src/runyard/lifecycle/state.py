"""The states of a run, and the reason for its end as a separate value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Optional


class RunState(str, Enum):
    """States with the names of SDK v1, so that no layer has to translate them."""

    NOT_STARTED = "NotStarted"
    PREPARING = "Preparing"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELED})


class EndReason(str, Enum):
    SUCCEEDED = "succeeded"
    SCRIPT_FAILED = "script failed"  # it exited with a code other than 0
    OUT_OF_MEMORY = "out of memory"
    KILLED = "killed"  # by a signal that Runyard did not send
    CANCELED = "canceled"
    TIMED_OUT = "timed out"
    MARKED_FAILED = "marked as failed"  # by run.fail()
    ENVIRONMENT_FAILED = "environment failed"
    LAUNCH_FAILED = "launch failed"
    AGENT_LOST = "agent lost"  # the agent of a run on one node died
    NODE_LOST = "node lost"  # one of several nodes, or its agent, died or became unreachable
    PREEMPTED = "preempted"  # the scheduler gave its resources to another job
    STALLED = "stalled"  # no progress, and the run is configured to stop in this case
    PROCESS_LOST = "process lost"  # the process of an interactive run ended without complete()


_STATE_OF_REASON = {
    EndReason.SUCCEEDED: RunState.COMPLETED,
    EndReason.CANCELED: RunState.CANCELED,
    EndReason.TIMED_OUT: RunState.CANCELED,  # as in the service of SDK v1, which canceled such runs
}


# Reasons that retry_on accepts. The others are deliberate, or the run never started.
RETRYABLE_REASONS = (
    EndReason.NODE_LOST,
    EndReason.PREEMPTED,
    EndReason.AGENT_LOST,
    EndReason.KILLED,
    EndReason.OUT_OF_MEMORY,
    EndReason.STALLED,
    EndReason.LAUNCH_FAILED,
    EndReason.SCRIPT_FAILED,
)


@dataclass(frozen=True)
class End:
    """The reason and circumstances of a run's end."""

    reason: EndReason
    message: str = ""  # one line: the script's last error line if it has one
    exit_code: Optional[int] = None
    signal: Optional[str] = None  # "SIGKILL"
    rank: Optional[int] = None
    node: Optional[str] = None
    traceback: str = ""  # as printed by the script
    last_lines: str = ""  # of the log
    processes_left: Optional[int] = None  # counted after stopping all of them; 0 unless the kernel is stuck

    @property
    def state(self) -> RunState:
        return _STATE_OF_REASON.get(self.reason, RunState.FAILED)


@dataclass(frozen=True)
class Attempt:
    """A finished attempt that was followed by another one."""

    end: End
    ended_at: Optional[float] = None


@dataclass(frozen=True)
class Life:
    """The part of a run that events change."""

    state: RunState = RunState.NOT_STARTED
    end: Optional[End] = None  # set from FINALIZING on; in CANCEL_REQUESTED: the expected end
    managed: bool = True  # False: an interactive run, whose process the yard did not start
    is_sweep: bool = False  # driven by the yard itself; ends after its child runs
    max_attempts: int = 1
    retry_on: tuple[str, ...] = ()  # values of EndReason after which the run is retried
    earlier_attempts: tuple[Attempt, ...] = ()

    @property
    def attempt(self) -> int:
        return len(self.earlier_attempts) + 1
