"""How a Slurm target is checked before it is kept, and made of what was kept."""

from __future__ import annotations

from pathlib import Path

from runyard.compute.base import Compute
from runyard.compute.local.compute import LocalCompute
from runyard.compute.scheduling.queue import Queue
from runyard.compute.slurm.client import Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.login_node import LoginCompute, LoginHost, call_on
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.slurm.queue import HandedOver
from runyard.compute.ssh.host import Hooks
from runyard.compute.ssh.openssh import checked_address
from runyard.errors import ComputeTargetException

KIND = "Slurm"


def make(
    options: SlurmOptions, home: Path, kit: Path, hooks: Hooks, local: LocalCompute, most_nodes: int | None = None
) -> tuple[Compute, Queue]:
    """Asks nobody: Slurm may be away while the yard starts."""
    if not options.login:
        compute = SlurmCompute(options, kit)
        return compute, HandedOver(compute.partition, compute.waiting_for, most_nodes)
    there = LoginCompute(options, _login_node(options, home, kit, hooks), kit=kit, local=local)
    return there, HandedOver(there.jobs.partition, there.jobs.waiting_for, most_nodes)


def check(name: str, options: SlurmOptions, home: Path, kit: Path) -> None:
    """Refuses a target on which nothing could ever run."""
    if not options.login:
        _check_partition(name, options, Slurm())
        return
    silent = Hooks(lambda run_id: None, lambda run_id, text: None, lambda: None)
    host = _login_node(options, home, kit, silent)
    try:
        _check_partition(name, options, Slurm(call_on(host)))
    finally:
        host.close()


def _login_node(options: SlurmOptions, home: Path, kit: Path, hooks: Hooks) -> LoginHost:
    return LoginHost(checked_address(options.login), home=home, kit=kit, hooks=hooks, folder=options.folder)


def _check_partition(name: str, options: SlurmOptions, slurm: Slurm) -> None:
    partitions = slurm.partitions()
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
