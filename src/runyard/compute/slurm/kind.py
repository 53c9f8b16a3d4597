"""How a Slurm target is checked before it is kept, and made of what was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard.compute.base import Compute
from runyard.compute.placing import Queue
from runyard.compute.slurm.client import Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.slurm.queue import HandedOver
from runyard.errors import ComputeTargetException

KIND = "Slurm"


def make(name: str, configuration: dict[str, Any], kit: Path) -> tuple[Compute, Queue]:
    """Asks nobody: Slurm may be away while the yard starts."""
    return of_options(read_options(name, configuration), kit)


def of_options(options: SlurmOptions, kit: Path, most_nodes: int | None = None) -> tuple[Compute, Queue]:
    compute = SlurmCompute(options, kit)
    return compute, HandedOver(compute.partition, compute.waiting_for, most_nodes)


def check(name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    check_partition(name, read_options(name, configuration))
    return configuration


def check_partition(name: str, options: SlurmOptions) -> None:
    """Refuses a target on which nothing could ever run."""
    partitions = Slurm().partitions()
    there = next((one for one in partitions if one.name == options.partition), None)
    if there is None:
        names = ", ".join(one.name for one in partitions) or "none at all"
        raise ComputeTargetException(
            f"cannot add {name!r}: this Slurm has no partition {options.partition!r}", hint=f"it has: {names}"
        )
    if not there.is_up:
        raise ComputeTargetException(
            f"cannot add {name!r}: partition {options.partition!r} is not up", hint="sinfo says how it stands"
        )
