"""Runs as jobs of Slurm. Their folders are on a file system that the nodes share with the yard."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard import clock
from runyard.agent.process.process_tree import stop_everything
from runyard.agent.process.scratch import clear_left
from runyard.compute.base import Capacity, Compute, Handle, Observed
from runyard.compute.slurm.client import Partition, QueuedJob, Slurm, SlurmSilent
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.slurm.script import job_name, render
from runyard.compute.slurm.squeue import Line, Look
from runyard.compute.slurm.states import Phase, end_reason, is_success, phase
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder
from runyard.launch.plan import describe
from runyard.launch.variables import process_tag
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder

_PARTITION_FOR_S = 300.0
_LAST_WORDS_S = 60.0  # how long the agents of a job that Slurm ends may take for theirs
_NO_ANSWER_TO_STOP_S = 60.0  # beyond the run's grace
_LINGERING_S = 2.0  # how long a job may stay after its agent's last word: srun waits for nodes that are lost
_SWEEP_GRACE_S = 2.0
_WENT_THROUGH_S, _ASK_AGAIN_S = 60.0, 1.0


class SlurmCompute(Compute):
    def __init__(self, options: SlurmOptions, kit: Path, slurm: Slurm | None = None) -> None:
        self.options, self._kit, self._slurm = options, kit, slurm or Slurm()
        self._line = Line(self._slurm, options.partition)
        self._submitted_at: dict[str, float] = {}
        self._ending_since: dict[str, float] = {}
        self._patience_until: dict[str, float] = {}  # of jobs that were asked to stop
        self._through_since: dict[str, float] = {}  # of jobs whose agent has said its last word
        self._untold: set[str] = set()  # those to be stopped while Slurm did not answer
        self._ended: set[str] = set()
        self._states: dict[str, str] = {}  # of jobs, as they were at the last look
        self._reasons: dict[str, str] = {}  # of runs that wait
        self._partition: tuple[float, Partition | None] = (-_PARTITION_FOR_S, None)

    def render(self, order: WorkOrder) -> str:
        nodes = range(max(1, len(order.nodes)))
        return f"{self.job_text(order)}\n{describe([replace(order, node_rank=node) for node in nodes])}"

    def job_text(self, order: WorkOrder) -> str:
        there = self._partition[1]
        return render(order, self.options, python=sys.executable, kit=str(self._kit), there=there)

    def start(self, order: WorkOrder) -> Handle:
        record, handle = JobRecord(RunFolder(Path(order.folder))), Handle(order.run_id, order.folder)
        name = job_name(order)
        if record.name == name and (record.job_id or self._submitted_before(record, name)):
            return self._unless_unwanted(handle, record)
        self.partition()  # how many CPUs a node has: asked here, so that the text can be made without asking
        try:
            job_id = self._hand_in(record, order, name)
        except OSError as error:
            raise ComputeTargetException(
                f"the job of {order.run_id} could not be written: {error}", hint="is the disk of the yard's home full?"
            ) from error
        except ComputeTargetException as error:
            unclear = isinstance(error, SlurmSilent) or error.facts.get("passing")
            if not (unclear and self._went_through(record, name)):
                record.refused()
                raise
        else:
            self._submitted(record, name, job_id)
        return self._unless_unwanted(handle, record)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, Observed]:
        jobs = {handle: _record(handle).job_id for handle in handles}
        unclear = {handle: job_id for handle, job_id in jobs.items() if job_id and job_id not in self._ended}
        look = self._line.look() if unclear else None
        seen = {handle: self._seen(handle, job_id, look) for handle, job_id in unclear.items()}
        return {handle: observed for handle, observed in seen.items() if observed is not None}

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        record = _record(handle)
        job_id = record.job_id
        if job_id is None or job_id in self._ended:  # it may just be on its way to Slurm: then this is found there
            if record.folder.root.is_dir():
                record.ask_to_stop(reason)
            return
        # The reason first: an agent that is just starting finds it, and agents of several nodes look for it.
        self._ask_to_stop(record, reason)
        self._line.hurry()
        self._patience_until.setdefault(job_id, clock.monotonic() + record.grace_s + _NO_ANSWER_TO_STOP_S)
        try:
            self._tell_to_stop(job_id, record)
        except SlurmSilent:
            self._untold.add(job_id)

    def sweep(self, handle: Handle) -> int:
        """Slurm ends what is left of a job on its nodes; what is on this machine is looked for as well."""
        job_id = _record(handle).job_id
        if job_id is not None:
            with suppress(SlurmSilent):
                self._slurm.cancel(job_id)
        tag = process_tag(handle.run_id, RunFolder(Path(handle.folder)))
        left = stop_everything(tag, _SWEEP_GRACE_S)
        clear_left(tag)
        return left

    def capacity(self) -> Capacity:
        there = self.partition()
        return Capacity(1, 0.0) if there is None else there.capacity

    def why_gone(self, handle: Handle) -> End | None:
        record = _record(handle)
        job_id = record.job_id
        if job_id is None:
            return None
        with suppress(ComputeTargetException):
            facts = self._slurm.job(job_id)
            if facts is not None:
                return _end_of(job_id, facts, record.output)
        said = f"job {job_id} is gone from Slurm, and its agent left no word"
        return End(EndReason.AGENT_LOST, said, last_lines=record.output)

    def waiting_for(self, run_id: str) -> str:
        """Slurm's reason, as it was at the last look."""
        return self._reasons.get(run_id, "")

    def partition(self) -> Partition | None:
        """Asked again after a while; None when Slurm does not answer, or has no such partition."""
        asked_at, there = self._partition
        if clock.monotonic() - asked_at > _PARTITION_FOR_S:
            with suppress(ComputeTargetException):
                there = next((p for p in self._slurm.partitions() if p.name == self.options.partition), None)
                self._partition = (clock.monotonic(), there)
        return there

    def _tell_to_stop(self, job_id: str, record: JobRecord) -> None:
        self._slurm.cancel(job_id, "--state=PENDING")
        if record.nodes == 1:
            self._slurm.cancel(job_id, "--batch", "--signal=TERM")
        # else the batch process is srun, which at a signal kills its tasks before they could say a last word

    def _unless_unwanted(self, handle: Handle, record: JobRecord) -> Handle:
        """Somebody may not want it any more, while it was on its way."""
        if record.is_asked_to_stop:
            threading.Thread(target=self.stop_quietly, args=(handle, record.stop_reason), daemon=True).start()
        return handle

    def stop_quietly(self, handle: Handle, reason: str) -> None:
        """For a thread of its own: a login node that is away is waited for."""
        with suppress(ComputeTargetException):
            self.stop(handle, reason)

    def _went_through(self, record: JobRecord, name: str) -> bool:
        """sbatch was cut off, or answered too late: whether there is a job, Slurm says as soon as it is back."""
        give_up = clock.monotonic() + _WENT_THROUGH_S
        while clock.monotonic() < give_up:
            with suppress(ComputeTargetException):
                return self._submitted_before(record, name)
            time.sleep(_ASK_AGAIN_S)
        return False

    def _hand_in(self, record: JobRecord, order: WorkOrder, name: str) -> str:
        """The job's number."""
        record.announce(order, self.job_text(order), name)
        return self._slurm.submit(str(record.script))

    def _ask_to_stop(self, record: JobRecord, reason: str) -> None:
        record.ask_to_stop(reason)

    def _submitted_before(self, record: JobRecord, name: str) -> bool:
        """A yard that was killed in the middle of sbatch may have submitted it: the job's name tells."""
        job_id = self._slurm.job_named(name)
        if job_id is not None:
            self._submitted(record, name, job_id)
        return job_id is not None

    def _submitted(self, record: JobRecord, name: str, job_id: str) -> None:
        self._forget_number(job_id)
        self._ended.discard(job_id)
        self._submitted_at[job_id] = clock.monotonic()
        self._line.hurry()
        record.submitted(name, job_id)

    def _seen(self, handle: Handle, job_id: str, look: Look | None) -> Observed | None:
        if look is None:  # nothing is known, so nothing is concluded
            return Observed(_record(handle).agent_pid, self._reasons.get(handle.run_id))
        if job_id in self._untold:
            self._untold.discard(job_id)
            self.stop(handle, _record(handle).stop_reason)
        job = look.jobs.get(job_id)
        # a look from before it was submitted knows nothing of it; it may have come and gone since
        if job is None and look.at <= self._submitted_at.get(job_id, -1.0) and not _record(handle).has_last_word:
            return self._waits(handle, look, QueuedJob(job_id, "PENDING", "None"))
        job = job or self._asked_for(job_id)
        at = phase(job.state) if job else Phase.ENDED
        if job is not None and is_success(job.state) and not _record(handle).has_last_word:
            at = Phase.ENDING  # it was said on the node: a shared file system shows it a little later
        if job is None or at is Phase.ENDED:
            self._forget(handle, job_id)
            return None
        if self._states.get(job_id) != job.state:
            self._states[job_id] = job.state
            self._line.hurry()
        if at is Phase.WAITING:
            return self._waits(handle, look, job)
        self._reasons.pop(handle.run_id, None)
        if self._lingers(handle, job_id):
            self._slurm.cancel(job_id)
            self._forget(handle, job_id)
            return None
        if at is Phase.ENDING:
            since = self._ending_since.setdefault(job_id, clock.monotonic())
            if clock.monotonic() - since > _LAST_WORDS_S:
                self._forget(handle, job_id)
                return None
        elif clock.monotonic() > self._patience_until.get(job_id, float("inf")):
            with suppress(ComputeTargetException):  # the agent does not listen: Slurm's own way
                self._slurm.cancel(job_id)
                del self._patience_until[job_id]
        return Observed(_record(handle).agent_pid)

    def _lingers(self, handle: Handle, job_id: str) -> bool:
        if not _record(handle).has_last_word:
            return False
        since = self._through_since.setdefault(job_id, clock.monotonic())
        self._line.hurry()
        return clock.monotonic() - since > _LINGERING_S

    def _asked_for(self, job_id: str) -> QueuedJob | None:
        """Not in the listing: it ended, or options sent it to another partition."""
        try:
            facts = self._slurm.job(job_id)
        except ComputeTargetException:
            return QueuedJob(job_id, "", "None")
        return QueuedJob(job_id, facts.get("JobState", ""), facts.get("Reason", "None")) if facts else None

    def _waits(self, handle: Handle, look: Look, job: QueuedJob) -> Observed:
        reason = self._reasons[handle.run_id] = look.why_waiting(job.job_id, job.reason)
        return Observed(waiting=reason)

    def _forget(self, handle: Handle, job_id: str) -> None:
        self._ended.add(job_id)
        self._reasons.pop(handle.run_id, None)
        self._forget_number(job_id)

    def _forget_number(self, job_id: str) -> None:
        """Slurm gives a number again when its controller lost its last seconds, and after the highest one."""
        self._states.pop(job_id, None)
        self._untold.discard(job_id)
        for memory in (self._submitted_at, self._ending_since, self._patience_until, self._through_since):
            memory.pop(job_id, None)


def _record(handle: Handle) -> JobRecord:
    return JobRecord(RunFolder(Path(handle.folder)))


def _end_of(job_id: str, facts: dict[str, str], output: str) -> End:
    state = facts.get("JobState", "")
    reason = end_reason(state) or EndReason.AGENT_LOST
    code = facts.get("ExitCode", "").partition(":")[0]
    said = f"job {job_id} of Slurm ended as {state}" + (f", exit code {code}" if code not in ("", "0") else "")
    why = facts.get("Reason", "None")
    said += f": {why}" if why not in ("None", "") else ""
    if reason is EndReason.AGENT_LOST and output:
        said += f"; its last words: {output.splitlines()[-1]}"
    node = facts.get("NodeList", "")
    return End(reason, said, node=None if node in ("", "(null)") else node, last_lines=output)
