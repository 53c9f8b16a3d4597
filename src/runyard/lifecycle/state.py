"""That a run ended, and, kept apart from it, why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Optional


class RunState(str, Enum):
    """The words are the SDK v1's, so that nothing has to be translated anywhere."""

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
    SCRIPT_FAILED = "script failed"  # it ended by itself with another exit code than 0
    OUT_OF_MEMORY = "out of memory"
    KILLED = "killed"  # by a signal that was not ours
    CANCELED = "canceled"
    TIMED_OUT = "timed out"
    MARKED_FAILED = "marked as failed"  # somebody called run.fail()
    ENVIRONMENT_FAILED = "environment failed"
    LAUNCH_FAILED = "launch failed"
    AGENT_LOST = "agent lost"  # the agent that held the processes is gone
    NODE_LOST = "node lost"  # one of several nodes, or its agent, is gone
    PREEMPTED = "preempted"  # its place was given to somebody else
    STALLED = "stalled"  # nothing moved any more, and the run was to end then
    PROCESS_LOST = "process lost"  # the process of an interactive run went away without complete()


_STATE_OF_REASON = {
    EndReason.SUCCEEDED: RunState.COMPLETED,
    EndReason.CANCELED: RunState.CANCELED,
    EndReason.TIMED_OUT: RunState.CANCELED,  # as the SDK v1's service did: it cancels a run after its time
}


# A person may ask for another try after these. The rest are somebody's will, or no run at all.
MAY_BE_RETRIED = (
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
    """Why a run ended: the first thing that people see."""

    reason: EndReason
    message: str = ""  # one line: the script's own last error line where there is one
    exit_code: Optional[int] = None
    signal: Optional[str] = None  # "SIGKILL"
    rank: Optional[int] = None
    node: Optional[str] = None
    traceback: str = ""  # the script's own, as it printed it
    last_lines: str = ""  # of its log
    processes_left: Optional[int] = None  # counted after the last was stopped: 0 is the promise

    @property
    def state(self) -> RunState:
        return _STATE_OF_REASON.get(self.reason, RunState.FAILED)


@dataclass(frozen=True)
class Attempt:
    """One that is over, and was followed by another."""

    end: End
    ended_at: Optional[float] = None


@dataclass(frozen=True)
class Life:
    """The part of a run that events change."""

    state: RunState = RunState.NOT_STARTED
    end: Optional[End] = None  # known from FINALIZING on; in CANCEL_REQUESTED it is what the run will end as
    managed: bool = True  # False: an interactive run, whose process is not the yard's
    leads: bool = False  # a sweep: it is the yard's own work, and ends after its children
    max_attempts: int = 1
    retry_on: tuple[str, ...] = ()  # reasons of an end after which the run is tried again
    earlier: tuple[Attempt, ...] = ()

    @property
    def attempt(self) -> int:
        return len(self.earlier) + 1
