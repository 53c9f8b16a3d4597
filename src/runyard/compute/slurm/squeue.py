"""What squeue says about a partition: asked once for all runs, and not more often than its controller can bear."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace

from runyard import clock
from runyard.compute.slurm.client import QueuedJob, Slurm
from runyard.compute.slurm.states import Phase, phase
from runyard.errors import ComputeTargetException

log = logging.getLogger(__name__)

_PACE_S = (0.5, 10.0)  # from one look to the next: soon after something happened to a job of ours, then less and less
_SLOWING = 1.25
_SHARE = 10  # a controller that needs a second for its answer is asked every ten

# Slurm's own words, with a person's beside them for the commonest.
_IN_WORDS = {
    "Resources": "waits for nodes to become free",
    "Priority": "others come first",
    "Dependency": "waits for another job",
    "PartitionNodeLimit": "the partition does not give a job so many nodes",
    "PartitionTimeLimit": "the partition does not give a job so much time",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as you may",
    "ReqNodeNotAvail": "nodes that it needs are down or reserved",
}


@dataclass(frozen=True)
class Look:
    at: float
    took_s: float
    jobs: dict[str, QueuedJob]
    places: dict[str, int]  # of those that wait, from 1

    def why_waiting(self, job_id: str, reason: str) -> str:
        place = self.places.get(job_id)
        words = f"{reason} ({_IN_WORDS[reason]})" if reason in _IN_WORDS else "" if reason == "None" else reason
        where = f"{_ordinal(place)} of {len(self.places)}" if place else ""
        return "waiting in Slurm" + "".join(f"; {part}" for part in (where, words) if part)


class Line:
    def __init__(self, slurm: Slurm, partition: str) -> None:
        self._slurm, self._partition = slurm, partition
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._is_silent = False
        self._pace_s = _PACE_S[0]

    def hurry(self) -> None:
        """A job of ours was submitted, is to stop, or changed."""
        self._pace_s = _PACE_S[0]

    def look(self) -> Look | None:
        """None when Slurm does not answer: then nothing is known."""
        with self._lock:
            last, now = self._last, clock.monotonic()
            if last is not None and now - last.at < max(self._pace_s, _SHARE * last.took_s):
                return None if self._is_silent else last
            self._pace_s = min(self._pace_s * _SLOWING, _PACE_S[1])
            try:
                jobs = self._slurm.jobs(self._partition)
            except ComputeTargetException as error:
                if not self._is_silent:
                    log.warning("partition %s: %s", self._partition, error.message)
                self._is_silent = True
                self._last = replace(last, at=now) if last else Look(now, 0.0, {}, {})
                return None
            self._is_silent = False
            waiting = [job.job_id for job in jobs if phase(job.state) is Phase.WAITING]
            self._last = Look(
                now,
                clock.monotonic() - now,
                {job.job_id: job for job in jobs},
                {job_id: place for place, job_id in enumerate(waiting, 1)},
            )
            return self._last


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
