"""The target kind of Slurm partitions."""

from __future__ import annotations

from runyard.compute.base import Compute
from runyard.compute.kind import Configuration, TargetDeps, TargetKind
from runyard.compute.scheduling.external_queue import ExternalQueue
from runyard.compute.scheduling.queue import Queue
from runyard.compute.slurm.client import Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.login_node import LoginNodeCompute, run_on
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.ssh.host import Host, HostCallbacks
from runyard.compute.ssh.openssh import checked_address
from runyard.errors import ComputeTargetException


class SlurmKind(TargetKind):
    title = "Slurm"

    def create(self, name: str, configuration: Configuration, deps: TargetDeps) -> tuple[Compute, Queue]:
        return create_partition(name, read_options(name, configuration), deps)

    def check(self, name: str, configuration: Configuration, deps: TargetDeps) -> Configuration:
        check_partition(name, read_options(name, configuration), deps)
        return configuration


def create_partition(
    name: str, options: SlurmOptions, deps: TargetDeps, max_nodes: int | None = None
) -> tuple[Compute, Queue]:
    if not options.login:
        compute = SlurmCompute(options, deps.node_package)
        return compute, Queue(ExternalQueue(compute, max_nodes))
    callbacks = HostCallbacks(deps.run_changed, deps.report, lambda: deps.capacity_changed(name))
    login = LoginNodeCompute(options, _login_host(options, deps, callbacks), kit=deps.node_package)
    return login, Queue(ExternalQueue(login.jobs, max_nodes))


def check_partition(name: str, options: SlurmOptions, deps: TargetDeps) -> None:
    """Refuse a partition that does not exist or is not up."""
    if not options.login:
        _check(name, options, Slurm())
        return
    host = _login_host(options, deps, HostCallbacks())
    try:
        _check(name, options, Slurm(run_on(host)))
    finally:
        host.close()


def _login_host(options: SlurmOptions, deps: TargetDeps, callbacks: HostCallbacks) -> Host:
    address = checked_address(options.login)
    return Host(address, home=deps.home, kit=deps.node_package, callbacks=callbacks, folder=options.folder)


def _check(name: str, options: SlurmOptions, slurm: Slurm) -> None:
    partitions = {partition.name: partition for partition in slurm.partitions()}
    if options.partition not in partitions:
        raise ComputeTargetException(
            f"cannot add {name!r}: Slurm has no partition {options.partition!r}",
            hint=f"partitions: {', '.join(partitions) or 'none'}",
        )
    if not partitions[options.partition].is_up:
        raise ComputeTargetException(
            f"cannot add {name!r}: partition {options.partition!r} is not up", hint="sinfo shows its state"
        )
