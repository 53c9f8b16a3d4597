"""The compute targets of a yard by name, and the kinds of targets that exist."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from runyard.compute.amlcompute import AmlComputeKind
from runyard.compute.base import Compute
from runyard.compute.kind import Configuration, TargetDeps, TargetKind
from runyard.compute.scheduling.machine_pool import YardMachine
from runyard.compute.scheduling.misconfigured import Misconfigured
from runyard.compute.scheduling.queue import Queue
from runyard.compute.slurm.target import SlurmKind
from runyard.compute.ssh.target import SshKind
from runyard.errors import ComputeTargetException
from runyard.store.computes import ComputeRecord, ComputeStore

LOCAL = "local"
ENTRY_POINTS = "runyard.computes"  # the group in which packages declare further kinds
_NO_EFFECT = "no_effect"  # the configuration key with notes about arguments that have no effect
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")

KINDS: dict[str, TargetKind] = {
    "Ssh": SshKind(),
    "Remote": SshKind(),  # one host, as the SDK v1 calls it
    "AmlCompute": AmlComputeKind(),
    "Slurm": SlurmKind(),
}


@dataclass(frozen=True)
class Target:
    name: str
    kind: str
    configuration: Configuration
    created_at: float | None
    compute: Compute
    queue: Queue

    def describe(self) -> dict[str, Any]:
        """JSON facts about capacity, scheduler and use."""
        facts: dict[str, Any] = {}
        if not self.queue.strategy.simulates_nodes:
            capacity = self.compute.capacity()
            gpus = [str(gpu) for gpu in capacity.gpus]
            facts.update(cpus=capacity.cpus, memory_gb=capacity.memory_gb, gpus=gpus)
        if self.compute.scheduler is not None:
            facts.update(self.compute.scheduler.describe())
        return {**facts, **self.queue.describe()}


class Targets:
    def __init__(self, store: ComputeStore, deps: TargetDeps) -> None:
        self._store, self._deps = store, deps
        # Held while a name is looked up and written. The yard is the only process that writes computes, and this is
        # the only object that does, so the table and `_targets` cannot differ; the table's primary key is the name.
        self._lock = threading.Lock()
        queue = Queue(YardMachine(LOCAL, deps.local.capacity()))
        self._targets = {LOCAL: Target(LOCAL, "Local", {}, None, deps.local, queue)}
        for record in store.all():
            self._targets[record.name] = self._restore(record)

    def get(self, name: str) -> Target:
        with self._lock:
            return self._find(name)

    def all(self) -> list[Target]:
        with self._lock:
            return list(self._targets.values())

    def create(self, name: str, kind: str, configuration: Configuration) -> Target:
        """Create a target. Creating it again with the same configuration returns the existing one."""
        target_kind = find_kind(kind)
        if not _NAME.fullmatch(name):
            raise ComputeTargetException(
                f"invalid compute target name {name!r}",
                hint="up to 32 characters: a letter first, then letters, digits and '-'",
            )
        existing = self._existing(name, kind, configuration)
        if existing is not None:
            return existing
        configuration = target_kind.check(name, configuration, self._deps)  # without the lock: it may take seconds
        with self._lock:
            existing = self._existing(name, kind, configuration)
            if existing is None:
                existing = self._targets[name] = self._restore(self._store.add(name, kind, configuration))
        return existing

    def update(self, name: str, changes: Configuration) -> Target:
        with self._lock:
            target = self._find(name)
            if target.kind not in KINDS or not KINDS[target.kind].resizable:
                raise ComputeTargetException(f"compute target {name!r} cannot be changed", hint="only clusters can")
            configuration = {**target.configuration, **{k: v for k, v in changes.items() if v is not None}}
            if configuration["max_nodes"] < configuration["min_nodes"]:
                raise ComputeTargetException(
                    f"max_nodes must be at least min_nodes ({configuration['min_nodes']}), "
                    f"got {configuration['max_nodes']}"
                )
            self._store.change(name, configuration)
            target.queue.resize(configuration["max_nodes"])
            changed = self._targets[name] = replace(target, configuration=configuration)
        return changed

    def delete(self, name: str) -> None:
        if name == LOCAL:
            raise ComputeTargetException(f"compute target {name!r} cannot be deleted", hint="it is this machine")
        with self._lock:
            target = self._find(name)
            run_ids = sorted(target.queue.runs())
            if run_ids:
                raise ComputeTargetException(
                    f"compute target {name!r} is in use by {', '.join(run_ids)}",
                    hint="cancel them, or wait for their end",
                )
            self._store.remove(name)
            del self._targets[name]
        if target.compute is not self._deps.local:
            target.compute.close()

    def close(self) -> None:
        """Release the connections of all targets. Runs continue."""
        for target in self.all():
            target.compute.close()

    def _find(self, name: str) -> Target:
        if name not in self._targets:
            names = ", ".join(self._targets)
            raise ComputeTargetException(f"no compute target named {name!r}", hint=f"targets here: {names}")
        return self._targets[name]

    def _existing(self, name: str, kind: str, configuration: Configuration) -> Target | None:
        target = self._targets.get(name)
        if target is None or (
            target.kind == kind and _user_options(kind, target.configuration) == _user_options(kind, configuration)
        ):
            return target
        raise ComputeTargetException(
            f"a different compute target named {name!r} exists",
            hint=f"choose another name, or remove it first: runyard compute remove {name}",
        )

    def _restore(self, record: ComputeRecord) -> Target:
        try:
            compute, queue = find_kind(record.kind).create(record.name, record.configuration, self._deps)
        except ComputeTargetException as error:  # its package was removed: the other targets must work
            compute, queue = self._deps.local, Queue(Misconfigured(error))
        return Target(record.name, record.kind, record.configuration, record.created_at, compute, queue)


def find_kind(name: str) -> TargetKind:
    """A built-in kind, or one that an installed package declares as an entry point."""
    if name in KINDS:
        return KINDS[name]
    declared = {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}
    if name not in declared:
        raise ComputeTargetException(
            f"no kind of compute target named {name!r}", hint=f"kinds: {', '.join([*KINDS, *sorted(declared)])}"
        )
    try:
        kind = declared[name].load()()
    except Exception as error:  # code of another package
        raise ComputeTargetException(
            f"compute target kind {name!r} ({declared[name].value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="update or reinstall the package that provides it",
        ) from error
    if not isinstance(kind, TargetKind):
        raise ComputeTargetException(f"compute target kind {name!r} ({declared[name].value}) is not a TargetKind")
    KINDS[name] = kind
    return kind


def _user_options(kind: str, configuration: Configuration) -> Configuration:
    """The configuration without values that were discovered, and notes about arguments without effect."""
    discovered = KINDS[kind].discovered if kind in KINDS else frozenset()
    return {key: value for key, value in configuration.items() if key not in discovered and key != _NO_EFFECT}
