"""Placement on machines that runs share: the yard's own, or SSH hosts. A gang takes one machine per node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runyard.compute.base import Capacity
from runyard.compute.scheduling.queue import LOOPBACK, Placement, PlacementStrategy
from runyard.compute.scheduling.resource_ledger import ResourceLedger, fit
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node
from runyard.spec.resources import Resources


@dataclass(frozen=True)
class Machine:
    name: str
    capacity: Capacity
    address: str = LOOPBACK  # where the other machines reach it
    unavailable: Callable[[], str] = lambda: ""  # the reason why nothing can start there now; "" = it is available


class MachinePool(PlacementStrategy):
    """A machine that is unavailable is skipped."""

    assigns_gpus = True

    def __init__(self, target: str, machines: Sequence[Machine]) -> None:
        self._target, self._machines = target, tuple(machines)
        self._ledgers = [ResourceLedger(machine.capacity) for machine in machines]

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """Each node needs one machine on which it fits."""
        self._check_node_count(resources.nodes)
        per_node = replace(resources, nodes=1)
        fitting: list[tuple[Resources, tuple[str, ...]]] = []
        refusal: ComputeTargetException | None = None
        for machine in self._machines:
            try:
                fitting.append(fit(per_node, machine.capacity, machine.name))
            except ComputeTargetException as error:
                refusal = error
        if len(fitting) < resources.nodes:
            assert refusal is not None
            raise refusal
        granted, warnings = min(fitting, key=lambda result: len(result[1]))
        return replace(granted, nodes=resources.nodes), warnings

    def choose(self, run_id: str, resources: Resources) -> Placement | None:
        """On the machines with the most free CPUs."""
        ledgers = self._ledgers
        free = [
            index
            for index, machine in enumerate(self._machines)
            if not machine.unavailable() and not ledgers[index].missing(resources)
        ]
        free.sort(key=lambda index: (-ledgers[index].free_cpus, index))
        chosen = tuple(sorted(free[: resources.nodes]))
        if len(chosen) < resources.nodes:
            return None
        gpus = self._common_gpus(chosen, resources)
        return None if gpus is None else Placement(run_id, gpus, chosen)

    def reserve(self, placement: Placement, resources: Resources) -> None:
        for index in placement.nodes:
            if index < len(self._ledgers):
                self._ledgers[index].reserve(placement.run_id, placement.gpus, resources)

    def release(self, run_id: str) -> None:
        for ledger in self._ledgers:
            ledger.release(run_id)

    def missing(self, resources: Resources) -> str:
        notes = [
            (machine.name, machine.unavailable() or ledger.missing(resources))
            for machine, ledger in zip(self._machines, self._ledgers)
        ]
        missing = [f"{name}: {note}" for name, note in notes if note]
        if len(notes) - len(missing) >= resources.nodes:
            return ""
        return (f"waiting for {resources.nodes} hosts; " if resources.nodes > 1 else "") + "; ".join(missing)

    def nodes(self, placement: Placement, *, is_gang: bool) -> tuple[Node, ...]:
        """Also for a single process: the node is the host to start it on."""
        machines = [self._machines[index] for index in placement.nodes]
        return tuple(Node(machine.name, machine.address) for machine in machines)

    def node_indices(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        names = [machine.name for machine in self._machines]
        return tuple(names.index(node.name) for node in nodes if node.name in names) or (0,)

    def _check_node_count(self, nodes: int) -> None:
        size = len(self._machines)
        if nodes > size:
            names = ", ".join(machine.name for machine in self._machines)
            raise ComputeTargetException(
                f"the run requests {nodes} nodes; {self._target!r} has {size}: {names}",
                hint=f"request {size} or fewer, or attach more hosts",
            )

    def _common_gpus(self, chosen: tuple[int, ...], resources: Resources) -> tuple[int, ...] | None:
        """One list of GPU indices is valid for all machines of a gang: they must be free on each of them."""
        needed = max(self._ledgers[index].gpu_count(resources) for index in chosen)
        free = [self._ledgers[index].free_gpus(resources) for index in chosen]
        common = tuple(gpu for gpu in free[0] if all(gpu in other for other in free[1:]))
        return common[:needed] if len(common) >= needed else None


class YardMachine(MachinePool):
    """The machine of the yard, as the target 'local'."""

    def __init__(self, target: str, capacity: Capacity) -> None:
        super().__init__(target, [Machine("this machine", capacity)])

    def missing(self, resources: Resources) -> str:
        return self._ledgers[0].missing(resources)

    def nodes(self, placement: Placement, *, is_gang: bool) -> tuple[Node, ...]:
        return (Node(self._target, LOOPBACK),) if is_gang else ()

    def node_indices(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        return (0,)

    def _check_node_count(self, nodes: int) -> None:
        if nodes > 1:
            raise ComputeTargetException(
                f"the run requests {nodes} nodes; {self._target!r} is one machine",
                hint="request several processes per node instead",
            )
