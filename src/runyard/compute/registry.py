"""The targets of a yard, by name: this machine, and the clusters that people made."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.compute import amlcompute
from runyard.compute.base import Compute
from runyard.compute.local.compute import LocalCompute
from runyard.compute.scheduling.local_queue import LocalQueue
from runyard.compute.scheduling.node_queue import NodeQueue
from runyard.compute.scheduling.queue import Queue, Refusing
from runyard.compute.slurm import target as slurm
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.slurm.queue import HandedOver
from runyard.compute.ssh import target as ssh
from runyard.compute.ssh.host import Hooks
from runyard.errors import ComputeTargetException
from runyard.spec import launch
from runyard.store.computes import ComputeRecord, ComputeStore

LOCAL = "local"
CLUSTER = "AmlCompute"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")


@dataclass(frozen=True)
class Around:
    """What a target of any kind is made with."""

    home: Path  # the yard's
    kit: Path  # the node kit, for PYTHONPATH
    local: LocalCompute
    news: Callable[[str], None]  # to be told the id of a run in whose folder something new was written
    say: Callable[[str, str], None]  # what a run, by its id, is waiting for; "" = nothing any more
    place: Callable[[str], None]  # to be told the name of a target that may have room again


Configuration = dict[str, Any]
Maker = Callable[[str, Configuration, Around], tuple[Compute, Queue]]
Checker = Callable[[str, Configuration, Around], Configuration]


@dataclass(frozen=True)
class Kind:
    """``make`` is called at every start of the yard too: it asks nobody, and raises nothing, since a cluster that is
    away for an hour must not keep the yard closed. ``check`` is called before a target is kept: it may take seconds,
    refuses what cannot work, and returns the configuration as it is to be kept."""

    make: Maker
    check: Checker = lambda name, configuration, around: configuration
    title: str = ""  # how a person calls it
    launches: tuple[str, ...] = tuple(launch.KINDS)  # which ways of launching work there


def _cluster(name: str, configuration: Configuration, around: Around) -> tuple[Compute, Queue]:
    """Nodes played on this machine, or those of the Slurm partition that the home's configuration names for them."""
    most = int(configuration["max_nodes"])
    try:
        options = amlcompute.partition_of(around.home, name, str(configuration.get("vm_size") or ""))
    except ComputeTargetException as error:
        return around.local, Refusing(error)
    if options is None:
        return around.local, NodeQueue(name, most)
    return _partition(name, options, around, most)


def _check_cluster(name: str, configuration: Configuration, around: Around) -> Configuration:
    options = amlcompute.partition_of(around.home, name, str(configuration.get("vm_size") or ""))
    if options is not None:
        slurm.check(name, options, around.home, around.kit)
    return configuration


def _partition(
    name: str, options: SlurmOptions, around: Around, most_nodes: int | None = None
) -> tuple[Compute, Queue]:
    hooks = Hooks(around.news, around.say, lambda: around.place(name))
    return slurm.make(options, around.home, around.kit, hooks, around.local, most_nodes)


def _check_slurm(name: str, configuration: Configuration, around: Around) -> Configuration:
    slurm.check(name, read_options(name, configuration), around.home, around.kit)
    return configuration


def _ssh(name: str, configuration: Configuration, around: Around) -> tuple[Compute, Queue]:
    hooks = Hooks(around.news, around.say, lambda: around.place(name))
    return ssh.make(name, configuration, around.home, around.kit, hooks, around.local)


_SSH = Kind(
    _ssh, lambda name, configuration, around: ssh.check(name, configuration, around.home, around.kit), "SSH hosts"
)

KINDS: dict[str, Kind] = {
    **dict.fromkeys(ssh.KINDS, _SSH),
    CLUSTER: Kind(_cluster, _check_cluster, "a cluster of nodes played on this machine"),
    slurm.KIND: Kind(
        lambda name, configuration, around: _partition(name, read_options(name, configuration), around),
        _check_slurm,
        "Slurm",
    ),
}


@dataclass(frozen=True)
class Target:
    name: str
    kind: str
    configuration: Configuration
    created_at: float | None
    compute: Compute
    queue: Queue


class Targets:
    def __init__(self, store: ComputeStore, around: Around) -> None:
        self._store, self._around = store, around
        self._lock = threading.Lock()
        queue = LocalQueue(around.local.capacity())
        self._known = {LOCAL: Target(LOCAL, "Local", {}, None, around.local, queue)}
        for record in store.all():
            self._known[record.name] = self._made(record)

    def get(self, name: str) -> Target:
        with self._lock:
            if name in self._known:
                return self._known[name]
            names = ", ".join(self._known)
        raise ComputeTargetException(f"no compute target named {name!r}", hint=f"targets here: {names}")

    def all(self) -> list[Target]:
        with self._lock:
            return list(self._known.values())

    def create(self, name: str, kind: str, configuration: Configuration) -> Target:
        """A target that people made or attached. The same again is the same."""
        if kind not in KINDS:
            raise ComputeTargetException(
                f"cannot create {name!r}: {kind!r} is not a kind of compute target", hint=f"kinds: {', '.join(KINDS)}"
            )
        if not _NAME.fullmatch(name):
            raise ComputeTargetException(
                f"{name!r} cannot be the name of a compute target",
                hint="up to 32 characters: a letter first, then letters, digits and '-'",
            )
        there = self._same(name, kind, configuration)
        if there is not None:
            return there
        configuration = KINDS[kind].check(name, configuration, self._around)  # takes seconds: not under the lock
        with self._lock:
            there = self._same(name, kind, configuration)
            if there is None:
                there = self._known[name] = self._made(self._store.add(name, kind, configuration))
        return there

    def update(self, name: str, changes: Configuration) -> Target:
        target = self.get(name)
        if target.kind != CLUSTER:
            raise ComputeTargetException(f"compute target {name!r} cannot be changed", hint="only clusters can")
        configuration = {**target.configuration, **{k: v for k, v in changes.items() if v is not None}}
        if configuration["max_nodes"] < configuration["min_nodes"]:
            raise ComputeTargetException(
                f"max_nodes would be {configuration['max_nodes']}, below min_nodes, {configuration['min_nodes']}"
            )
        with self._lock:
            self._store.change(name, configuration)
            if isinstance(target.queue, (NodeQueue, HandedOver)):
                target.queue.resize(configuration["max_nodes"])
            changed = Target(name, target.kind, configuration, target.created_at, target.compute, target.queue)
            self._known[name] = changed
        return changed

    def delete(self, name: str) -> None:
        target = self.get(name)
        if name == LOCAL:
            raise ComputeTargetException(f"compute target {name!r} cannot be deleted", hint="it is this machine")
        using = sorted(target.queue.runs())
        if using:
            raise ComputeTargetException(
                f"compute target {name!r} is in use by {', '.join(using)}", hint="cancel them, or wait for their end"
            )
        with self._lock:
            self._store.remove(name)
            del self._known[name]
        target.compute.close()

    def close(self) -> None:
        """Runs go on."""
        for target in self.all():
            target.compute.close()

    def _same(self, name: str, kind: str, configuration: Configuration) -> Target | None:
        there = self._known.get(name)
        if there is None or (there.kind == kind and _asked(there.configuration) == _asked(configuration)):
            return there
        raise ComputeTargetException(
            f"there is a compute target {name!r} already, and it is another one",
            hint=f"choose another name, or remove that one first: runyard compute remove {name}",
        )

    def _made(self, record: ComputeRecord) -> Target:
        compute, queue = KINDS[record.kind].make(record.name, record.configuration, self._around)
        return Target(record.name, record.kind, record.configuration, record.created_at, compute, queue)


def _asked(configuration: Configuration) -> Configuration:
    """Without what was found out when it was attached, and what was said of arguments that change nothing."""
    return {name: value for name, value in configuration.items() if name not in (ssh.FOUND, "no_effect")}
