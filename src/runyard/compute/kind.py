"""A kind of compute target: how targets of that kind are validated and created.

Packages add kinds through the entry point group ``runyard.computes``; see docs/guides/custom-compute-target.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.compute.base import Compute
from runyard.compute.local.compute import LocalCompute
from runyard.compute.scheduling.queue import Queue
from runyard.spec import launch

Configuration = dict[str, Any]


@dataclass(frozen=True)
class TargetDeps:
    """The parts of the yard that a target may use."""

    home: Path
    node_package: Path  # for PYTHONPATH of agents and scripts
    local: LocalCompute
    run_changed: Callable[[str], None]  # call it with the id of a run whose folder has new content
    report: Callable[[str, str], None]  # call it with a run id and what the run waits for; "" = nothing
    capacity_changed: Callable[[str], None]  # call it with the target's name when waiting runs may fit now


class TargetKind(ABC):
    title = ""  # for the table of supported features
    launches: tuple[str, ...] = tuple(launch.KINDS)  # the ways of launching that work
    resizable = False  # True: `update` may change max_nodes, with Queue.resize
    discovered: frozenset[str] = frozenset()  # keys that `check` adds to the configuration

    def check(self, name: str, configuration: Configuration, deps: TargetDeps) -> Configuration:
        """Validate the configuration of a new target and return the one to store. May connect, and take seconds.

        Raises:
            ComputeTargetException: No run could work on this target.
        """
        return configuration

    @abstractmethod
    def create(self, name: str, configuration: Configuration, deps: TargetDeps) -> tuple[Compute, Queue]:
        """Create the target from its stored configuration.

        Also called whenever the yard starts, so it must neither connect nor raise: a cluster that is down for an hour
        must not keep the yard from starting.
        """
