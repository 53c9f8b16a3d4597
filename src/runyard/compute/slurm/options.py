"""What a person says about a Slurm partition when they add it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from runyard.errors import ComputeTargetException

# Runyard answers for these itself: said once more by a person, they would contradict the run's own request.
_OURS = {
    "--array": "one run is one job",
    "-a": "one run is one job",
    "--chdir": "the run's folder is where its files are",
    "-D": "the run's folder is where its files are",
    "--error": "the run's logs are in its own folder",
    "-e": "the run's logs are in its own folder",
    "--export": "variables come with the run",
    "--job-name": "runs are found by it",
    "-J": "runs are found by it",
    "--nodes": "node_count of the run says it",
    "-N": "node_count of the run says it",
    "--ntasks": "process_count_per_node of the run says it",
    "-n": "process_count_per_node of the run says it",
    "--ntasks-per-node": "process_count_per_node of the run says it",
    "--open-mode": "the run's logs are in its own folder",
    "--output": "the run's logs are in its own folder",
    "-o": "the run's logs are in its own folder",
    "--parsable": "it is how the job's number is read",
    "--requeue": "max_attempts of the run says it",
    "--no-requeue": "max_attempts of the run says it",
    "--wait": "the yard waits by itself",
    "-W": "the yard waits by itself",
    "--wrap": "the script is the run's own",
}


@dataclass(frozen=True)
class SlurmOptions:
    partition: str
    account: str = ""
    qos: str = ""
    constraint: str = ""
    login: str = ""  # user@host of its login node; "" = Slurm's commands are here
    folder: str = ""  # Runyard's on the login node; "" = the usual one
    options: tuple[str, ...] = ()  # further flags of sbatch, each as it is written: "--gres=gpu:a100:2"


def read_options(name: str, configuration: Mapping[str, Any]) -> SlurmOptions:
    """From what was asked for; raises for what cannot be meant."""
    known = {field.name for field in fields(SlurmOptions)}
    unknown = sorted(set(configuration) - known)
    if unknown:
        raise ComputeTargetException(
            f"Slurm target {name!r}: {', '.join(unknown)} is not known", hint=f"known: {', '.join(sorted(known))}"
        )
    texts = {key: str(configuration.get(key) or "") for key in known - {"options"}}
    if not texts["partition"]:
        raise ComputeTargetException(f"Slurm target {name!r} needs a partition", hint="sinfo lists them")
    options = tuple(str(option) for option in configuration.get("options") or ())
    for option in options:
        flag = option.partition("=")[0].strip()
        flag = flag if flag.startswith("--") else flag[:2]
        if not flag.startswith("-") or flag in ("-", "--"):
            raise ComputeTargetException(
                f"Slurm target {name!r}: {option!r} is not a flag of sbatch", hint="write it as '--exclusive'"
            )
        if flag in _OURS:
            raise ComputeTargetException(
                f"Slurm target {name!r}: {flag} cannot be among the options: {_OURS[flag]}", hint="leave it out"
            )
    for key, text in (*texts.items(), *(("options", option) for option in options)):
        if "\n" in text or "\0" in text:
            raise ComputeTargetException(f"Slurm target {name!r}: {key} has a line break in it")
    return SlurmOptions(**texts, options=options)
