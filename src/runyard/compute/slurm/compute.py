"""Runs as Slurm jobs. Their folders are on a file system that the nodes share with the yard."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.agent.process.process_tree import stop_processes
from runyard.agent.process.scratch import clear_leftovers
from runyard.compute.base import AgentStatus, Capacity, Compute, ExternalScheduler, Handle
from runyard.compute.slurm.client import Partition, QueuedJob, Slurm, SlurmUnavailable
from runyard.compute.slurm.fit import fit
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.slurm.script import job_name, render
from runyard.compute.slurm.squeue import JobListing, SqueuePoller
from runyard.compute.slurm.states import Phase, end_reason, is_success, phase
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder
from runyard.launch.plan import describe
from runyard.launch.private_variables import delivery_path, write_delivery
from runyard.launch.variables import process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder
from runyard.spec.resources import Resources

_PARTITION_CACHE_S = 300.0
_LAST_EVENTS_S = 60.0  # how long the agents of a job that Slurm is ending may take to write their last events
_STOP_TIMEOUT_S = 60.0  # beyond the run's grace period
_LINGER_S = 2.0  # how long a job may stay after its agent's last event: srun waits for lost nodes
_LEFTOVERS_GRACE_S = 2.0
_SUBMISSION_TIMEOUT_S, _SUBMISSION_POLL_S = 60.0, 1.0


class SlurmCompute(Compute, ExternalScheduler):
    def __init__(self, options: SlurmOptions, kit: Path, slurm: Slurm | None = None) -> None:
        self.options, self._kit, self._slurm = options, kit, slurm or Slurm()
        self.scheduler = self
        self._poller = SqueuePoller(self._slurm, options.partition)
        # by job id
        self._submitted_at: dict[str, float] = {}
        self._ending_since: dict[str, float] = {}
        self._stop_deadline: dict[str, float] = {}
        self._finished_since: dict[str, float] = {}  # jobs whose agent has written its last event
        self._unsent_stops: set[str] = set()  # stop requests that Slurm did not receive
        self._ended: set[str] = set()
        self._states: dict[str, str] = {}
        self._reasons: dict[str, str] = {}  # by run id, of waiting runs
        self._partition: tuple[float, Partition | None] = (-_PARTITION_CACHE_S, None)

    def render(self, order: WorkOrder) -> str:
        nodes = range(max(1, len(order.nodes)))
        return f"{self.job_script(order)}\n{describe([replace(order, node_rank=node) for node in nodes])}"

    def job_script(self, order: WorkOrder) -> str:
        partition = self._partition[1]
        return render(order, self.options, python=sys.executable, kit=str(self._kit), partition=partition)

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """While Slurm does not respond nothing is refused here; Slurm itself refuses the job later."""
        partition = self.partition()
        return (resources, ()) if partition is None else fit(resources, partition)

    def start(self, order: WorkOrder, digests: Mapping[str, str] | None = None) -> Handle:
        record, handle = JobRecord(RunFolder(Path(order.folder))), Handle(order.run_id, order.folder)
        name = job_name(order)
        if record.name == name and (record.job_id or self._find_submitted(record, name)):
            return self._stop_if_requested(handle, record)
        self.partition()  # fills the cache that `job_script` reads
        try:
            job_id = self._submit(record, order, name, digests or {})
        except OSError as error:
            raise ComputeTargetException(
                f"cannot write the job of {order.run_id}: {error}", hint="is the disk of the yard's home full?"
            ) from error
        except ComputeTargetException as error:
            unclear = isinstance(error, SlurmUnavailable) or error.facts.get("transient")
            if not (unclear and self._wait_for_submitted(record, name)):
                record.delete()
                raise
        else:
            self._remember(record, name, job_id)
        return self._stop_if_requested(handle, record)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        job_ids = {handle: _record(handle).job_id for handle in handles}
        unclear = {handle: job_id for handle, job_id in job_ids.items() if job_id and job_id not in self._ended}
        listing = self._poller.poll() if unclear else None
        agents = {handle: self._agent_status(handle, job_id, listing) for handle, job_id in unclear.items()}
        return {handle: agent for handle, agent in agents.items() if agent is not None}

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        record = _record(handle)
        job_id = record.job_id
        if job_id is None or job_id in self._ended:  # it may be in submission: `start` reads the request afterwards
            if record.folder.root.is_dir():
                record.request_stop(reason)
            return
        # The file first: an agent that is just starting reads it, and the agents of several nodes poll it.
        self._write_stop_request(record, reason)
        self._poller.poll_soon()
        self._stop_deadline.setdefault(job_id, clock.monotonic() + record.grace_s + _STOP_TIMEOUT_S)
        try:
            self._slurm.cancel(job_id, "--state=PENDING")
            if record.nodes == 1:
                self._slurm.cancel(job_id, "--batch", "--signal=TERM")
            # for several nodes the batch process is srun, which kills its tasks at a signal: no last events
        except SlurmUnavailable:
            self._unsent_stops.add(job_id)

    def stop_leftovers(self, handle: Handle) -> int:
        """Slurm stops the job's processes on its nodes; those on the yard's machine are stopped here."""
        job_id = _record(handle).job_id
        if job_id is not None:
            with suppress(SlurmUnavailable):
                self._slurm.cancel(job_id)
        tag = process_tag(handle.run_id, RunFolder(Path(handle.folder)))
        remaining = stop_processes(tag, _LEFTOVERS_GRACE_S)
        clear_leftovers(tag)
        return remaining

    def capacity(self) -> Capacity:
        partition = self.partition()
        return Capacity(1, 0.0) if partition is None else partition.capacity

    def explain_loss(self, handle: Handle) -> End | None:
        record = _record(handle)
        job_id = record.job_id
        if job_id is None:
            return None
        with suppress(ComputeTargetException):
            fields = self._slurm.job(job_id)
            if fields is not None:
                return _end_of(job_id, fields, record.output)
        message = f"Slurm no longer has job {job_id}, and its agent recorded no end"
        return End(EndReason.AGENT_LOST, message, last_lines=record.output)

    def waiting_reason(self, run_id: str) -> str:
        """Slurm's reason at the last poll."""
        return self._reasons.get(run_id, "")

    def describe(self) -> dict[str, Any]:
        partition = self.partition()
        facts: dict[str, Any] = {"partition": self.options.partition, "answers": partition is not None}
        if partition is not None:
            facts.update(node_count=partition.nodes, time_limit=partition.time_limit)
        return facts

    def partition(self) -> Partition | None:
        """The partition, cached for some minutes; None if Slurm does not respond or has no such partition."""
        queried_at, partition = self._partition
        if clock.monotonic() - queried_at > _PARTITION_CACHE_S:
            with suppress(ComputeTargetException):
                partition = next((p for p in self._slurm.partitions() if p.name == self.options.partition), None)
                self._partition = (clock.monotonic(), partition)
        return partition

    def stop_quietly(self, handle: Handle, reason: str) -> None:
        """For a separate thread: waits for a login node that cannot be reached."""
        with suppress(ComputeTargetException):
            self.stop(handle, reason)

    def _submit(self, record: JobRecord, order: WorkOrder, name: str, digests: Mapping[str, str]) -> str:
        record.write_before_submission(order, self.job_script(order), name)
        for node_rank in range(order.resources.nodes):
            write_delivery(delivery_path(record.folder, order.attempt, node_rank), order.private)
        return self._slurm.submit(str(record.script))

    def _write_stop_request(self, record: JobRecord, reason: str) -> None:
        record.request_stop(reason)

    def _stop_if_requested(self, handle: Handle, record: JobRecord) -> Handle:
        """Act on a stop request that came while the job was being submitted."""
        if record.stop_requested:
            threading.Thread(target=self.stop_quietly, args=(handle, record.stop_reason), daemon=True).start()
        return handle

    def _wait_for_submitted(self, record: JobRecord, name: str) -> bool:
        """After sbatch was interrupted or timed out: True if the job exists, once Slurm responds again."""
        deadline = clock.monotonic() + _SUBMISSION_TIMEOUT_S
        while clock.monotonic() < deadline:
            with suppress(ComputeTargetException):
                return self._find_submitted(record, name)
            time.sleep(_SUBMISSION_POLL_S)
        return False

    def _find_submitted(self, record: JobRecord, name: str) -> bool:
        """Find the job of a yard that was killed during sbatch, by its name."""
        job_id = self._slurm.job_named(name)
        if job_id is not None:
            self._remember(record, name, job_id)
        return job_id is not None

    def _remember(self, record: JobRecord, name: str, job_id: str) -> None:
        self._forget_job_id(job_id)
        self._ended.discard(job_id)
        self._submitted_at[job_id] = clock.monotonic()
        self._poller.poll_soon()
        record.write_job_id(name, job_id)

    def _agent_status(self, handle: Handle, job_id: str, listing: JobListing | None) -> AgentStatus | None:
        record = _record(handle)
        if listing is None:  # the state is unknown: report no change
            return AgentStatus(record.agent_pid, self._reasons.get(handle.run_id))
        if job_id in self._unsent_stops:
            self._unsent_stops.discard(job_id)
            self.stop(handle, record.stop_reason)
        job = listing.jobs.get(job_id)
        # a listing from before the submission does not contain the job, which may even have ended since
        if job is None and listing.polled_at <= self._submitted_at.get(job_id, -1.0) and not record.has_ended:
            return self._waiting(handle, listing, QueuedJob(job_id, "PENDING", "None"))
        job = job or self._query(job_id)
        job_phase = phase(job.state) if job else Phase.ENDED
        if job is not None and is_success(job.state) and not record.has_ended:
            job_phase = Phase.ENDING  # the last event was written on the node; a shared file system shows it later
        if job is None or job_phase is Phase.ENDED:
            self._forget(handle, job_id)
            return None
        if self._states.get(job_id) != job.state:
            self._states[job_id] = job.state
            self._poller.poll_soon()
        if job_phase is Phase.WAITING:
            return self._waiting(handle, listing, job)
        self._reasons.pop(handle.run_id, None)
        if record.has_ended and self._lingers(job_id):
            self._slurm.cancel(job_id)
            self._forget(handle, job_id)
            return None
        if job_phase is Phase.ENDING:
            since = self._ending_since.setdefault(job_id, clock.monotonic())
            if clock.monotonic() - since > _LAST_EVENTS_S:
                self._forget(handle, job_id)
                return None
        elif clock.monotonic() > self._stop_deadline.get(job_id, float("inf")):
            with suppress(ComputeTargetException):  # the agent does not stop: let Slurm kill the job
                self._slurm.cancel(job_id)
                del self._stop_deadline[job_id]
        return AgentStatus(record.agent_pid)

    def _lingers(self, job_id: str) -> bool:
        since = self._finished_since.setdefault(job_id, clock.monotonic())
        self._poller.poll_soon()
        return clock.monotonic() - since > _LINGER_S

    def _query(self, job_id: str) -> QueuedJob | None:
        """A job that is not listed: it ended, or its options moved it to another partition."""
        try:
            fields = self._slurm.job(job_id)
        except ComputeTargetException:
            return QueuedJob(job_id, "", "None")
        return QueuedJob(job_id, fields.get("JobState", ""), fields.get("Reason", "None")) if fields else None

    def _waiting(self, handle: Handle, listing: JobListing, job: QueuedJob) -> AgentStatus:
        reason = self._reasons[handle.run_id] = listing.waiting_reason(job.job_id, job.reason)
        return AgentStatus(waiting_reason=reason)

    def _forget(self, handle: Handle, job_id: str) -> None:
        self._ended.add(job_id)
        self._reasons.pop(handle.run_id, None)
        self._forget_job_id(job_id)

    def _forget_job_id(self, job_id: str) -> None:
        """Slurm reuses job ids after a controller lost its last seconds, and after the highest id."""
        self._states.pop(job_id, None)
        self._unsent_stops.discard(job_id)
        for times in (self._submitted_at, self._ending_since, self._stop_deadline, self._finished_since):
            times.pop(job_id, None)


def _record(handle: Handle) -> JobRecord:
    return JobRecord(RunFolder(Path(handle.folder)))


def _end_of(job_id: str, fields: dict[str, str], output: str) -> End:
    state = fields.get("JobState", "")
    reason = end_reason(state) or EndReason.AGENT_LOST
    code = fields.get("ExitCode", "").partition(":")[0]
    message = f"Slurm job {job_id} ended as {state}" + (f", exit code {code}" if code not in ("", "0") else "")
    slurm_reason = fields.get("Reason", "None")
    message += f": {slurm_reason}" if slurm_reason not in ("None", "") else ""
    if reason is EndReason.AGENT_LOST and output:
        message += f"; its output ended with: {output.splitlines()[-1]}"
    node = fields.get("NodeList", "")
    return End(reason, message, node=None if node in ("", "(null)") else node, last_lines=output)
