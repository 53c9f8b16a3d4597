"""Polls squeue for a partition: one call for all runs, and no more often than the controller can take."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace

from runyard import clock
from runyard.compute.slurm.client import QueuedJob, Slurm
from runyard.compute.slurm.states import Phase, phase
from runyard.errors import ComputeTargetException

log = logging.getLogger(__name__)

_INTERVAL_S = (0.5, 10.0)  # short after a job of ours changed, then longer and longer
_BACKOFF = 1.25
_RESPONSE_FACTOR = 10  # poll at most once per 10 times the controller's response time

# Explanations for the most common of Slurm's reasons.
_REASONS = {
    "Resources": "waiting for free nodes",
    "Priority": "jobs with a higher priority come first",
    "Dependency": "waiting for another job",
    "PartitionNodeLimit": "the job exceeds the partition's node limit",
    "PartitionTimeLimit": "the job exceeds the partition's time limit",
    "QOSMaxJobsPerUserLimit": "you have reached the limit of running jobs",
    "ReqNodeNotAvail": "required nodes are down or reserved",
}


@dataclass(frozen=True)
class JobListing:
    polled_at: float
    response_s: float
    jobs: dict[str, QueuedJob]  # by job id
    positions: dict[str, int]  # of waiting jobs, from 1

    def waiting_reason(self, job_id: str, reason: str) -> str:
        position = self.positions.get(job_id)
        explained = f"{reason} ({_REASONS[reason]})" if reason in _REASONS else "" if reason == "None" else reason
        rank = f"{_ordinal(position)} of {len(self.positions)}" if position else ""
        return "waiting in Slurm" + "".join(f"; {part}" for part in (rank, explained) if part)


class SqueuePoller:
    def __init__(self, slurm: Slurm, partition: str) -> None:
        self._slurm, self._partition = slurm, partition
        self._lock = threading.Lock()
        self._last: JobListing | None = None
        self._is_unavailable = False
        self._interval_s = _INTERVAL_S[0]

    def poll_soon(self) -> None:
        """Shorten the interval: a job of ours was submitted, canceled, or changed its state."""
        self._interval_s = _INTERVAL_S[0]

    def poll(self) -> JobListing | None:
        """The current listing, at most one interval old; None if Slurm does not respond."""
        with self._lock:
            last, now = self._last, clock.monotonic()
            if last is not None and now - last.polled_at < max(self._interval_s, _RESPONSE_FACTOR * last.response_s):
                return None if self._is_unavailable else last
            self._interval_s = min(self._interval_s * _BACKOFF, _INTERVAL_S[1])
            try:
                jobs = self._slurm.jobs(self._partition)
            except ComputeTargetException as error:
                if not self._is_unavailable:
                    log.warning("partition %s: %s", self._partition, error.message)
                self._is_unavailable = True
                self._last = replace(last, polled_at=now) if last else JobListing(now, 0.0, {}, {})
                return None
            self._is_unavailable = False
            waiting = [job.job_id for job in jobs if phase(job.state) is Phase.WAITING]
            self._last = JobListing(
                now,
                clock.monotonic() - now,
                {job.job_id: job for job in jobs},
                {job_id: position for position, job_id in enumerate(waiting, 1)},
            )
            return self._last


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
