"""The targets of a yard, by name: this machine, and the clusters that people made."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

from runyard.compute.base import Compute
from runyard.compute.local import LocalCompute
from runyard.compute.node_queue import NodeQueue
from runyard.compute.placing import Queue
from runyard.compute.queue import LocalQueue
from runyard.errors import ComputeTargetException
from runyard.store.computes import ComputeStore

LOCAL = "local"
CLUSTER = "AmlCompute"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")


@dataclass(frozen=True)
class Target:
    name: str
    kind: str
    configuration: dict[str, Any]
    created_at: float | None
    compute: Compute
    queue: Queue


class Targets:
    def __init__(self, store: ComputeStore, local: LocalCompute) -> None:
        self._store, self._local = store, local
        self._lock = threading.Lock()
        queue = LocalQueue(local.capacity())
        self._known = {LOCAL: Target(LOCAL, "Local", {}, None, local, queue)}
        for record in store.all():
            self._known[record.name] = self._cluster(record.name, record.configuration, record.created_at)

    def get(self, name: str) -> Target:
        with self._lock:
            if name in self._known:
                return self._known[name]
            names = ", ".join(self._known)
        raise ComputeTargetException(f"no compute target named {name!r}", hint=f"targets here: {names}")

    def all(self) -> list[Target]:
        with self._lock:
            return list(self._known.values())

    def create(self, name: str, kind: str, configuration: dict[str, Any]) -> Target:
        """A cluster on this machine: nodes as asked for, each an agent of its own. The same again is the same."""
        if kind != CLUSTER:
            raise ComputeTargetException(
                f"cannot create {name!r}: a {kind} is not available in this version",
                hint="AmlCompute.provisioning_configuration(max_nodes=…) makes a cluster of nodes on this machine",
            )
        if not _NAME.fullmatch(name):
            raise ComputeTargetException(
                f"{name!r} cannot be the name of a compute target",
                hint="up to 32 characters: a letter first, then letters, digits and '-'",
            )
        with self._lock:
            if name in self._known:
                there = self._known[name]
                if there.configuration == configuration:
                    return there
                raise ComputeTargetException(
                    f"there is a compute target {name!r} already, and it is another one",
                    hint=f"ComputeTarget(workspace, {name!r}) gives it; update(…) changes it; delete() removes it",
                )
            record = self._store.add(name, kind, configuration)
            target = self._known[name] = self._cluster(name, configuration, record.created_at)
        return target

    def update(self, name: str, changes: dict[str, Any]) -> Target:
        target = self.get(name)
        if not isinstance(target.queue, NodeQueue):
            raise ComputeTargetException(f"compute target {name!r} cannot be changed", hint="only clusters can")
        configuration = {**target.configuration, **{k: v for k, v in changes.items() if v is not None}}
        if configuration["max_nodes"] < configuration["min_nodes"]:
            raise ComputeTargetException(
                f"max_nodes would be {configuration['max_nodes']}, below min_nodes, {configuration['min_nodes']}"
            )
        with self._lock:
            self._store.change(name, configuration)
            target.queue.resize(configuration["max_nodes"])
            changed = Target(name, target.kind, configuration, target.created_at, target.compute, target.queue)
            self._known[name] = changed
        return changed

    def delete(self, name: str) -> None:
        target = self.get(name)
        if not isinstance(target.queue, NodeQueue):
            raise ComputeTargetException(f"compute target {name!r} cannot be deleted", hint="it is this machine")
        using = sorted({*target.queue.placements().values(), *target.queue.waiting()})
        if using:
            raise ComputeTargetException(
                f"compute target {name!r} is in use by {', '.join(using)}", hint="cancel them, or wait for their end"
            )
        with self._lock:
            self._store.remove(name)
            del self._known[name]

    def _cluster(self, name: str, configuration: dict[str, Any], created_at: float) -> Target:
        queue = NodeQueue(name, int(configuration["max_nodes"]))
        return Target(name, CLUSTER, configuration, created_at, self._local, queue)
