"""The capacity of one machine and what runs hold of it. No I/O and no lock: the queue serializes the calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from runyard.compute.base import Capacity
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


class ResourceLedger:
    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._held: dict[str, tuple[tuple[int, ...], Resources]] = {}
        self._cpus_in_use = 0
        self._memory_in_use_gb = 0.0
        self._gpu_users: Counter[int] = Counter()
        self._exclusive: set[int] = set()

    @property
    def free_cpus(self) -> int:
        return self.capacity.cpus - self._cpus_in_use

    def missing(self, resources: Resources) -> str:
        """Describe what is not free of the resources that a run takes on one node; "" if it fits."""
        needs: list[str] = []
        cpus, memory_gb, gpus = self._cpus(resources), resources.memory_gb, self.gpu_count(resources)
        capacity = self.capacity
        if cpus > self.free_cpus:
            needs.append(f"waiting for {count(cpus, 'CPU')}; {self._cpus_in_use} of {capacity.cpus} in use")
        if memory_gb > capacity.memory_gb - self._memory_in_use_gb + 1e-9:
            in_use = f"{self._memory_in_use_gb:g} of {capacity.memory_gb:g} GB in use"
            needs.append(f"waiting for {memory_gb:g} GB of memory; {in_use}")
        if gpus > len(self.free_gpus(resources)):
            in_use = f"{sum(1 for users in self._gpu_users.values() if users)} of {len(capacity.gpus)} in use"
            needs.append(f"waiting for {count(gpus, 'GPU')}; {in_use}")
        return f"{', '.join(needs)} by {name_some(self._held)}" if needs else ""

    def free_gpus(self, resources: Resources) -> tuple[int, ...]:
        """Indices of the GPUs a run may get, best first. Shared GPUs are only used by runs that share them."""
        if resources.gpus_per_process == 0:
            return ()
        indices = [gpu.index for gpu in self.capacity.gpus]
        if not resources.share_gpus:
            return tuple(index for index in indices if not self._gpu_users[index])
        return tuple(sorted((i for i in indices if i not in self._exclusive), key=lambda i: (self._gpu_users[i], i)))

    def gpu_count(self, resources: Resources) -> int:
        return min(resources.gpus_per_node, len(self.capacity.gpus))

    def reserve(self, run_id: str, gpus: tuple[int, ...], resources: Resources) -> None:
        self._held[run_id] = (gpus, resources)
        self._cpus_in_use += self._cpus(resources)
        self._memory_in_use_gb += resources.memory_gb
        self._gpu_users.update(gpus)
        if not resources.share_gpus:
            self._exclusive.update(gpus)

    def release(self, run_id: str) -> None:
        gpus, resources = self._held.pop(run_id, ((), None))
        if resources is None:
            return
        self._cpus_in_use -= self._cpus(resources)
        self._memory_in_use_gb -= resources.memory_gb
        for index in gpus:
            self._gpu_users[index] -= 1
            if not resources.share_gpus:
                self._exclusive.discard(index)

    def _cpus(self, resources: Resources) -> int:
        return min(resources.cpus_per_node, self.capacity.cpus)


def fit(resources: Resources, capacity: Capacity, machine: str) -> tuple[Resources, tuple[str, ...]]:
    """Return the resources that one node gets on a machine, with a warning for each difference from the request.

    More processes than CPUs are allowed: they share the CPUs. A capacity of 0 means unknown.

    Raises:
        ComputeTargetException: The machine could never run it.
    """
    problems: list[tuple[str, str]] = []
    if capacity.cpus and resources.cpus_per_process > capacity.cpus:
        request = f"requests {count(resources.cpus_per_process, 'CPU')} per process"
        problems.append((f"{request}; {machine} has {capacity.cpus}", f"request {capacity.cpus} or fewer"))
    if capacity.memory_gb and resources.memory_gb > capacity.memory_gb:
        request = f"requests {resources.memory_gb:g} GB of memory"
        problems.append((f"{request}; {machine} has {capacity.memory_gb:g} GB", "request less, or none: not limited"))
    gpu_count = len(capacity.gpus)
    requested = resources.gpus_per_process if resources.share_gpus else resources.gpus_per_node
    if gpu_count and requested > gpu_count:
        too_many = resources.gpus_per_process > gpu_count
        hint = f"request {gpu_count} or fewer" if too_many else "share_gpus=True lets processes share a GPU"
        problems.append((f"requests {count(requested, 'GPU')}; {machine} has {gpu_count}", hint))
    if problems:
        raise ComputeTargetException(
            "the run " + "; ".join(problem for problem, _ in problems), hint="; ".join(hint for _, hint in problems)
        )
    return reduce_to(resources, capacity, machine)


def reduce_to(resources: Resources, capacity: Capacity, machine: str) -> tuple[Resources, tuple[str, ...]]:
    """Without GPUs where there are none; with a warning for that, and for CPUs that several processes share."""
    warnings: list[str] = []
    if resources.gpus_per_process and not capacity.gpus:
        resources = replace(resources, gpus_per_process=0)
        warnings.append(f"a GPU was requested and {machine} has none: running on the CPU")
    if capacity.cpus and resources.cpus_per_node > capacity.cpus:
        processes = f"{resources.processes_per_node} processes of {count(resources.cpus_per_process, 'CPU')}"
        warnings.append(f"{processes} share the {count(capacity.cpus, 'CPU')} of {machine}")
    return resources, tuple(warnings)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def name_some(run_ids: Iterable[str]) -> str:
    """The first three run ids, and how many more there are."""
    names = list(run_ids)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
