"""Resource requirements of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    nodes: int = 1
    processes_per_node: int = 1
    cpus_per_process: int = 1
    gpus_per_process: int = 0
    memory_gb: float = 0.0  # per node; 0 = unspecified: not counted by the queue and not enforced
    share_gpus: bool = False  # True: may be placed on a GPU that another run uses
    gpus_required: bool = False  # True: the number of GPUs was requested explicitly, so the CPU does not replace them

    @property
    def cpus_per_node(self) -> int:
        return self.cpus_per_process * self.processes_per_node

    @property
    def gpus_per_node(self) -> int:
        return self.gpus_per_process * self.processes_per_node
