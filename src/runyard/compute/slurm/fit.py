"""Checks a run's resources against a partition."""

from __future__ import annotations

from dataclasses import replace

from runyard.compute.scheduling import resource_ledger
from runyard.compute.scheduling.resource_ledger import count
from runyard.compute.slurm.client import Partition
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


def fit(resources: Resources, partition: Partition) -> tuple[Resources, tuple[str, ...]]:
    """As ``Queue.fit``. Limits other than the partition's size are reported by Slurm at submission."""
    if resources.nodes > partition.nodes:
        raise ComputeTargetException(
            f"the run requests {count(resources.nodes, 'node')}; partition {partition.name!r} has {partition.nodes}",
            hint=f"request {partition.nodes} or fewer",
        )
    largest = f"the largest node of partition {partition.name!r}"
    # Slurm grants whole GPUs
    resource_ledger.fit(replace(resources, share_gpus=False), partition.capacity, largest)
    return resource_ledger.reduce_to(resources, partition.capacity, largest)
