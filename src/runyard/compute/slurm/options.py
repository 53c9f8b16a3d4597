"""The options of a Slurm target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from runyard.errors import ComputeTargetException

# Flags that Runyard sets: given again as an option, they would contradict the run.
_RESERVED = {
    **dict.fromkeys(("--array", "-a"), "one run is one job"),
    **dict.fromkeys(("--chdir", "-D"), "jobs start in the run's folder"),
    **dict.fromkeys(("--error", "-e", "--open-mode", "--output", "-o"), "logs are in the run's folder"),
    "--export": "the run defines its variables",
    **dict.fromkeys(("--job-name", "-J"), "the job's name identifies the run"),
    **dict.fromkeys(("--nodes", "-N"), "node_count of the run sets it"),
    **dict.fromkeys(("--ntasks", "-n", "--ntasks-per-node"), "process_count_per_node of the run sets it"),
    "--parsable": "the job id is read from this format",
    **dict.fromkeys(("--requeue", "--no-requeue"), "max_attempts of the run sets it"),
    **dict.fromkeys(("--wait", "-W"), "the yard waits for the job"),
    "--wrap": "the yard writes the script",
}


@dataclass(frozen=True)
class SlurmOptions:
    partition: str
    account: str = ""
    qos: str = ""
    constraint: str = ""
    login: str = ""  # user@host of the login node; "" = Slurm's commands run on the yard's machine
    folder: str = ""  # Runyard's folder on the login node; "" = the default
    options: tuple[str, ...] = ()  # additional sbatch flags, verbatim: "--gres=gpu:a100:2"


def read_options(name: str, configuration: Mapping[str, Any]) -> SlurmOptions:
    """Parse and validate the configuration of the target ``name``."""
    names = {field.name for field in fields(SlurmOptions)}
    unknown = sorted(set(configuration) - names)
    if unknown:
        raise ComputeTargetException(
            f"Slurm target {name!r}: unknown option {', '.join(unknown)}", hint=f"options: {', '.join(sorted(names))}"
        )
    texts = {key: str(configuration.get(key) or "") for key in names - {"options"}}
    if not texts["partition"]:
        raise ComputeTargetException(f"Slurm target {name!r} needs a partition", hint="sinfo lists them")
    options = tuple(str(option) for option in configuration.get("options") or ())
    for option in options:
        flag = option.partition("=")[0].strip()
        flag = flag if flag.startswith("--") else flag[:2]
        if not flag.startswith("-") or flag in ("-", "--"):
            raise ComputeTargetException(
                f"Slurm target {name!r}: {option!r} is not an sbatch flag", hint="write it as '--exclusive'"
            )
        if flag in _RESERVED:
            raise ComputeTargetException(
                f"Slurm target {name!r}: option {flag} is not allowed: {_RESERVED[flag]}", hint="remove it"
            )
    for key, text in (*texts.items(), *(("options", option) for option in options)):
        if "\n" in text or "\0" in text:
            raise ComputeTargetException(f"Slurm target {name!r}: {key} contains a line break")
    return SlurmOptions(**texts, options=options)
