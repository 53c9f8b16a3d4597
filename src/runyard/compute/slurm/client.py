"""Talks to Slurm by its own commands. What they print is read by pure functions; accounting is not needed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard.compute.base import Capacity, Gpu
from runyard.errors import ComputeTargetException

_ANSWER_S = 20.0
# What a job inherits of the yard's own environment. The run's variables are in its order; those of an allocation that
# the yard itself may run in must not become the job's.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "SLURM_CONF")
_JOBS = "%i|%T|%r"
_PARTITIONS = "%R|%a|%D|%c|%m|%G|%l"
_GPUS = re.compile(r"\bgpu(?::[^,:()]+)?:(\d+)")


class SlurmSilent(ComputeTargetException):
    """Slurm does not answer: it may be back in a minute, and nothing is known until then."""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Caller = Callable[[Sequence[str]], Answer]


@dataclass(frozen=True)
class QueuedJob:
    job_id: str
    state: str
    reason: str


@dataclass(frozen=True)
class Partition:
    name: str
    is_up: bool
    nodes: int
    cpus: int  # of its largest node
    memory_gb: float
    gpus: int
    time_limit: str

    @property
    def capacity(self) -> Capacity:
        """Of its largest node."""
        return Capacity(self.cpus, self.memory_gb, tuple(Gpu(index) for index in range(self.gpus)))


def call_here(words: Sequence[str]) -> Answer:
    """A command on this machine."""
    variables = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(
            words,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
            cwd="/",
        )
    except FileNotFoundError:
        raise ComputeTargetException(
            f"Slurm is not installed here: there is no {words[0]}",
            hint="run the yard on a machine from which you can sbatch, or name one: --login user@host",
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmSilent(f"{words[0]} did not answer within {_ANSWER_S:.0f} s", hint="is slurmctld up?") from None
    return Answer(done.returncode, done.stdout, done.stderr)


class Slurm:
    """Each verb is one command. ``call`` runs it, here or on a login node."""

    def __init__(self, call: Caller = call_here) -> None:
        self._call = call

    def submit(self, script: str) -> str:
        """The job's number. Raises with sbatch's own words."""
        said = self._said(["sbatch", "--parsable", script], "sbatch refused the job")
        return said.strip().splitlines()[-1].partition(";")[0]

    def jobs(self, partition: str) -> list[QueuedJob]:
        """Everybody's jobs that wait or run there, the next to start first."""
        words = ["squeue", "--noheader", f"--partition={partition}", "--sort=-p,i", f"--format={_JOBS}"]
        return parse_jobs(self._said(words, "squeue"))

    def job_named(self, name: str) -> str | None:
        """The number of the newest job of that name, also of one that has ended."""
        said = self._said(["squeue", "--noheader", "--states=all", f"--name={name}", "--format=%i"], "squeue")
        numbers = said.split()
        return numbers[-1] if numbers else None

    def job(self, job_id: str) -> dict[str, str] | None:
        """What Slurm still knows of it; None when it has forgotten it."""
        answer = self._call(["scontrol", "--oneliner", "show", "job", job_id])
        if answer.code != 0 and "invalid job id" in answer.err.lower():
            return None
        return parse_facts(_checked(answer, "scontrol"))

    def cancel(self, job_id: str, *flags: str) -> None:
        """Also one that has ended: then it is as it is."""
        answer = self._call(["scancel", "--quiet", *flags, job_id])
        if answer.code != 0 and is_silence(answer.err):
            _checked(answer, "scancel")

    def partitions(self) -> list[Partition]:
        return parse_partitions(self._said(["sinfo", "--noheader", f"--format={_PARTITIONS}"], "sinfo"))

    def _said(self, words: Sequence[str], what: str) -> str:
        return _checked(self._call(words), what)


def parse_jobs(text: str) -> list[QueuedJob]:
    """Lines of squeue; one that says anything else is passed over."""
    found = [line.split("|", 2) for line in text.splitlines()]
    return [QueuedJob(*(field.strip() for field in fields)) for fields in found if len(fields) == 3]


def parse_partitions(text: str) -> list[Partition]:
    """A partition of unlike nodes has a line for each sort of them."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 7:
            continue
        name, up, nodes, cpus, memory, resources, limit = fields
        before = found.get(name, Partition(name, False, 0, 0, 0.0, 0, limit))
        found[name] = Partition(
            name,
            up == "up",
            before.nodes + _number(nodes),
            max(before.cpus, _number(cpus)),
            max(before.memory_gb, round(_number(memory) / 1024, 2)),
            max(before.gpus, sum(int(count) for count in _GPUS.findall(resources))),
            limit,
        )
    return list(found.values())


def parse_facts(text: str) -> dict[str, str]:
    """``JobState=RUNNING Reason=None …`` of scontrol. A value may hold blanks; a name never does."""
    return {found[1]: found[2].strip() for found in re.finditer(r"(\w[\w:]*)=(.*?)(?=\s+\w[\w:]*=|\s*$)", text)}


def is_silence(words: str) -> bool:
    """Whether this is Slurm's way to say that its controller does not answer."""
    lowered = words.lower()
    return any(
        sign in lowered for sign in ("unable to contact slurm controller", "socket timed out", "connection refused")
    )


def _checked(answer: Answer, what: str) -> str:
    if answer.code == 0:
        return answer.out
    words = (
        "; ".join(_own_words(line) for line in answer.err.splitlines() if line.strip()) or f"exit code {answer.code}"
    )
    if is_silence(answer.err):
        raise SlurmSilent(f"{what}: {words}", hint="is slurmctld up, and SLURM_CONF right?")
    raise ComputeTargetException(f"{what}: {words}", hint="these are Slurm's own words; `sinfo` shows what there is")


def _own_words(line: str) -> str:
    return re.sub(r"^(sbatch|squeue|scontrol|sinfo|scancel): (error: )?", "", line.strip())


def _number(text: str) -> int:
    """``128+`` is said of nodes that differ."""
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
