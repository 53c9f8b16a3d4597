"""What one machine has, and what of it runs hold. No I/O, no lock: whoever has one keeps it to one thread at a time."""

from __future__ import annotations

from collections import Counter

from runyard.compute.base import Capacity
from runyard.spec.resources import Resources


class Share:
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

    def lacking(self, resources: Resources) -> str:
        """What is not free of what the resources take on one node, in a person's words; "" = all of it is."""
        needs: list[str] = []
        cpus, memory_gb, gpus = self._cpus(resources), resources.memory_gb, self.gpu_count(resources)
        have = self.capacity
        if cpus > self.free_cpus:
            needs.append(f"waiting for {count(cpus, 'CPU')}; {self._cpus_in_use} of {have.cpus} in use")
        if memory_gb > have.memory_gb - self._memory_in_use_gb + 1e-9:
            in_use = f"{self._memory_in_use_gb:g} of {have.memory_gb:g} GB in use"
            needs.append(f"waiting for {memory_gb:g} GB of memory; {in_use}")
        if gpus > len(self.free_gpus(resources)):
            in_use = f"{sum(1 for users in self._gpu_users.values() if users)} of {len(have.gpus)} in use"
            needs.append(f"waiting for {count(gpus, 'GPU')}; {in_use}")
        return f"{', '.join(needs)} by {self._holders()}" if needs else ""

    def free_gpus(self, resources: Resources) -> tuple[int, ...]:
        """Best first. A run that shares goes only where all others share too."""
        if resources.gpus_per_process == 0:
            return ()
        indices = [gpu.index for gpu in self.capacity.gpus]
        if not resources.share_gpus:
            return tuple(index for index in indices if not self._gpu_users[index])
        return tuple(sorted((i for i in indices if i not in self._exclusive), key=lambda i: (self._gpu_users[i], i)))

    def gpu_count(self, resources: Resources) -> int:
        return min(resources.gpus_per_node, len(self.capacity.gpus))

    def take(self, run_id: str, gpus: tuple[int, ...], resources: Resources) -> None:
        self._held[run_id] = (gpus, resources)
        self._cpus_in_use += self._cpus(resources)
        self._memory_in_use_gb += resources.memory_gb
        self._gpu_users.update(gpus)
        if not resources.share_gpus:
            self._exclusive.update(gpus)

    def give_back(self, run_id: str) -> None:
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

    def _holders(self) -> str:
        names = list(self._held)
        shown = ", ".join(names[:3])
        return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
