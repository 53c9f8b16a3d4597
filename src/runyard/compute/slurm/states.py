"""Slurm's words for the state of a job, and what they mean for a run."""

from __future__ import annotations

from enum import Enum

from runyard.lifecycle.state import EndReason


class Phase(Enum):
    WAITING = "waiting"  # in Slurm's line: no agent yet, or not any more
    RUNNING = "running"
    ENDING = "ending"  # Slurm stops what is left of it; agents may still be writing their last word
    ENDED = "ended"


_PHASES = {
    "PENDING": Phase.WAITING,
    "CONFIGURING": Phase.WAITING,  # its nodes are booted for it
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
    "SUSPENDED": Phase.RUNNING,  # its processes stand still, and go on
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

# Why a job ended, where Slurm knows better than the agent, which was only told to stop.
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
    """The agent came to its end by itself: so it has said a last word."""
    return _first(state) == "COMPLETED"


def phase(state: str) -> Phase:
    """A word of a newer Slurm counts as a job that is there: a run is not given up over a word."""
    return _PHASES.get(_first(state), Phase.RUNNING)


def end_reason(state: str) -> EndReason | None:
    """None: Slurm knows no more than that it ended."""
    return _REASONS.get(_first(state))


def _first(state: str) -> str:
    """``CANCELLED by 1000``, ``CANCELLED+``"""
    return state.split(" ")[0].rstrip("+").upper()
