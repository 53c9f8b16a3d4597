"""Client for Slurm's command-line tools. Their output is parsed by pure functions; accounting is not required."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard.errors import ComputeTargetException
from runyard.posix import descriptor_limit
from runyard.posix.machine import Capacity, Gpu

_TIMEOUT_S = 20.0
# The variables of the yard that a job inherits. The run's own variables are in its order; those of an allocation in
# which the yard itself may run must not become the job's.
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "SLURM_CONF")
_JOBS = "%i|%T|%r"
_PARTITIONS = "%R|%a|%D|%c|%m|%G|%l"
_GPUS = re.compile(r"\bgpu(?::[^,:()]+)?:(\d+)")


class SlurmUnavailable(ComputeTargetException):
    """Slurm does not respond. It may be back in a minute; until then the state of jobs is unknown."""


@dataclass(frozen=True)
class CommandResult:
    code: int
    stdout: str
    stderr: str


CommandRunner = Callable[[Sequence[str]], CommandResult]


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
    cpus: int  # of the largest node, as are memory and GPUs
    memory_gb: float
    gpus: int
    time_limit: str

    @property
    def capacity(self) -> Capacity:
        """The capacity of the largest node."""
        return Capacity(self.cpus, self.memory_gb, tuple(Gpu(index) for index in range(self.gpus)))


def run_here(argv: Sequence[str]) -> CommandResult:
    """Run a command on the yard's machine."""
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    try:
        result = subprocess.run(
            argv if shutil.which(argv[0]) is None else descriptor_limit.with_original_limit(argv),  # jobs inherit it
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            cwd="/",
        )
    except FileNotFoundError:
        raise ComputeTargetException(
            f"Slurm is not installed here: {argv[0]} not found",
            hint="run the yard on a machine that has sbatch, or name one: --login user@host",
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmUnavailable(
            f"{argv[0]} did not respond within {_TIMEOUT_S:.0f} s", hint="is slurmctld up?"
        ) from None
    return CommandResult(result.returncode, result.stdout, result.stderr)


class Slurm:
    """Each method runs one command through ``run``, on the yard's machine or on a login node."""

    def __init__(self, run: CommandRunner = run_here) -> None:
        self._run = run

    def submit(self, script: str) -> str:
        """Submit a script and return the job id. Raises with sbatch's message."""
        output = self._output(["sbatch", "--parsable", script], "sbatch refused the job")
        return output.strip().splitlines()[-1].partition(";")[0]

    def jobs(self, partition: str) -> list[QueuedJob]:
        """All users' jobs that wait or run in a partition, the next to start first."""
        argv = ["squeue", "--noheader", f"--partition={partition}", "--sort=-p,i", f"--format={_JOBS}"]
        return parse_jobs(self._output(argv, "squeue"))

    def job_named(self, name: str) -> str | None:
        """The id of the newest job of that name, including jobs that have ended."""
        argv = ["squeue", "--noheader", "--states=all", f"--name={name}", "--format=%i"]
        job_ids = self._output(argv, "squeue").split()
        return job_ids[-1] if job_ids else None

    def job(self, job_id: str) -> dict[str, str] | None:
        """The fields of a job; None if Slurm no longer has it."""
        result = self._run(["scontrol", "--oneliner", "show", "job", job_id])
        if result.code != 0 and "invalid job id" in result.stderr.lower():
            return None
        return parse_fields(_checked(result, "scontrol"))

    def cancel(self, job_id: str, *flags: str) -> None:
        """Cancel a job. Does nothing if it has ended."""
        result = self._run(["scancel", "--quiet", *flags, job_id])
        if result.code != 0 and _is_unavailable(result.stderr):
            _checked(result, "scancel")

    def partitions(self) -> list[Partition]:
        return parse_partitions(self._output(["sinfo", "--noheader", f"--format={_PARTITIONS}"], "sinfo"))

    def _output(self, argv: Sequence[str], action: str) -> str:
        return _checked(self._run(argv), action)


def parse_jobs(text: str) -> list[QueuedJob]:
    """Parse squeue's lines; other lines are skipped."""
    rows = [line.split("|", 2) for line in text.splitlines()]
    return [QueuedJob(*(field.strip() for field in fields)) for fields in rows if len(fields) == 3]


def parse_partitions(text: str) -> list[Partition]:
    """Parse sinfo's lines. A partition has one line for each type of node."""
    partitions: dict[str, Partition] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 7:
            continue
        name, up, nodes, cpus, memory, resources, limit = fields
        previous = partitions.get(name, Partition(name, False, 0, 0, 0.0, 0, limit))
        partitions[name] = Partition(
            name,
            up == "up",
            previous.nodes + _number(nodes),
            max(previous.cpus, _number(cpus)),
            max(previous.memory_gb, round(_number(memory) / 1024, 2)),
            max(previous.gpus, sum(int(count) for count in _GPUS.findall(resources))),
            limit,
        )
    return list(partitions.values())


def parse_fields(text: str) -> dict[str, str]:
    """Parse scontrol's ``JobState=RUNNING Reason=None …``. A value may contain spaces, a name never does."""
    return {match[1]: match[2].strip() for match in re.finditer(r"(\w[\w:]*)=(.*?)(?=\s+\w[\w:]*=|\s*$)", text)}


def _is_unavailable(stderr: str) -> bool:
    """True if the command could not reach the controller."""
    texts = ("unable to contact slurm controller", "socket timed out", "connection refused")
    return any(text in stderr.lower() for text in texts)


def _checked(result: CommandResult, action: str) -> str:
    if result.code == 0:
        return result.stdout
    lines = [_without_prefix(line) for line in result.stderr.splitlines() if line.strip()]
    message = f"{action}: {'; '.join(lines) or f'exit code {result.code}'}"
    if _is_unavailable(result.stderr):
        raise SlurmUnavailable(message, hint="is slurmctld up, and SLURM_CONF right?")
    raise ComputeTargetException(message, hint="this is Slurm's own message; `sinfo` lists partitions and nodes")


def _without_prefix(line: str) -> str:
    return re.sub(r"^(sbatch|squeue|scontrol|sinfo|scancel): (error: )?", "", line.strip())


def _number(text: str) -> int:
    """Parse a count; sinfo prints ``128+`` for nodes that differ."""
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
