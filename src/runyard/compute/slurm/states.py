"""Slurm's job states and their meaning for a run."""

from __future__ import annotations

from enum import Enum

from runyard.lifecycle.state import EndReason


class Phase(Enum):
    WAITING = "waiting"  # in Slurm's queue: there is no agent
    RUNNING = "running"
    ENDING = "ending"  # Slurm stops its processes; agents may still write their last events
    ENDED = "ended"


_PHASES = {
    "PENDING": Phase.WAITING,
    "CONFIGURING": Phase.WAITING,  # its nodes are being booted
    "REQUEUED": Phase.WAITING,
    "REQUEUE_FED": Phase.WAITING,
    "REQUEUE_HOLD": Phase.WAITING,
    "RESV_DEL_HOLD": Phase.WAITING,
    "SPECIAL_EXIT": Phase.WAITING,
    "RUNNING": Phase.RUNNING,
    "RESIZING": Phase.RUNNING,
    "SIGNALING": Phase.RUNNING,
    "STAGE_OUT": Phase.RUNNING,
    "STOPPED": Phase.RUNNING,
    "SUSPENDED": Phase.RUNNING,  # its processes are paused
    "COMPLETING": Phase.ENDING,
    "BOOT_FAIL": Phase.ENDED,
    "CANCELLED": Phase.ENDED,
    "COMPLETED": Phase.ENDED,
    "DEADLINE": Phase.ENDED,
    "FAILED": Phase.ENDED,
    "NODE_FAIL": Phase.ENDED,
    "OUT_OF_MEMORY": Phase.ENDED,
    "PREEMPTED": Phase.ENDED,
    "REVOKED": Phase.ENDED,
    "TIMEOUT": Phase.ENDED,
}

# The end reasons that Slurm knows better than the agent, which only received a signal.
_REASONS = {
    "BOOT_FAIL": EndReason.NODE_LOST,
    "CANCELLED": EndReason.CANCELED,
    "DEADLINE": EndReason.TIMED_OUT,
    "NODE_FAIL": EndReason.NODE_LOST,
    "OUT_OF_MEMORY": EndReason.OUT_OF_MEMORY,
    "PREEMPTED": EndReason.PREEMPTED,
    "TIMEOUT": EndReason.TIMED_OUT,
}


def is_success(state: str) -> bool:
    """True if the agent exited normally, so that it has written its last event."""
    return _first(state) == "COMPLETED"


def phase(state: str) -> Phase:
    """The phase of a state. An unknown state, of a newer Slurm, counts as running so that the run is not lost."""
    return _PHASES.get(_first(state), Phase.RUNNING)


def end_reason(state: str) -> EndReason | None:
    """The reason that a final state implies; None if it implies none."""
    return _REASONS.get(_first(state))


def _first(state: str) -> str:
    """The state without its suffix: ``CANCELLED by 1000``, ``CANCELLED+``."""
    return state.split(" ")[0].rstrip("+").upper()
