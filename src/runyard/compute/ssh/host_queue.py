"""Who may start on which host: first come, first served. Single runs share a host, a gang takes one for each node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runyard.compute.base import Capacity
from runyard.compute.scheduling.fifo import Line
from runyard.compute.scheduling.local_queue import fit
from runyard.compute.scheduling.queue import Placement
from runyard.compute.scheduling.resource_ledger import Share
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


@dataclass(frozen=True)
class Place:
    """A host, as the queue sees it. ``why_not`` says why nothing can be started there now; "" = nothing is wrong."""

    name: str
    capacity: Capacity
    why_not: Callable[[], str]


class HostQueue:
    """The first in line is never overtaken, so that a big request gets its turn. A host that is away is passed over."""

    def __init__(self, name: str, places: Sequence[Place]) -> None:
        self._name, self._places = name, tuple(places)
        self._shares = [Share(place.capacity) for place in places]
        self._lock = threading.Lock()
        self._line = Line()
        self._placed: dict[str, Placement] = {}

    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """One host that fits is enough for a node; the largest say what cannot be."""
        if resources.nodes > len(self._places):
            raise ComputeTargetException(
                f"the run asks for {resources.nodes} nodes; {self._name!r} has {len(self._places)}: "
                + ", ".join(place.name for place in self._places),
                hint=f"ask for {len(self._places)} or fewer, or attach more hosts",
            )
        one = replace(resources, nodes=1)
        fitting: list[tuple[Resources, tuple[str, ...]]] = []
        refused: ComputeTargetException | None = None
        for place in self._places:
            try:
                fitting.append(fit(one, place.capacity, place.name))
            except ComputeTargetException as error:
                refused = error
        if len(fitting) < resources.nodes:
            assert refused is not None
            raise refused
        given, warnings = min(fitting, key=lambda found: len(found[1]))
        return replace(given, nodes=resources.nodes), warnings

    def ask(self, run_id: str, resources: Resources, turn: int | None = None) -> None:
        with self._lock:
            if run_id not in self._placed and run_id not in self._line:
                self._line.join(run_id, resources, turn)

    def adopt(self, run_id: str, resources: Resources, placement: Placement) -> None:
        with self._lock:
            if run_id not in self._placed:
                self._line.leave(run_id)
                self._take(placement, resources)

    def leave(self, run_id: str) -> None:
        with self._lock:
            self._line.leave(run_id)
            self._placed.pop(run_id, None)
            for share in self._shares:
                share.give_back(run_id)

    def place(self) -> list[Placement]:
        placements = []
        with self._lock:
            while (first := self._line.first) and (placement := self._placed_now(*first)):
                placements.append(placement)
        return placements

    def place_if_first(self, run_id: str) -> bool:
        with self._lock:
            first = self._line.first
            return first is not None and first[0] == run_id and self._placed_now(*first) is not None

    def placement(self, run_id: str) -> Placement | None:
        with self._lock:
            return self._placed.get(run_id)

    def runs(self) -> list[str]:
        with self._lock:
            return [*self._placed, *self._line]

    def reason(self, run_id: str) -> str:
        with self._lock:
            if run_id not in self._line:
                return ""
            place, resources = self._line.position(run_id), self._line.asked(run_id)
            notes = []
            for number, there in enumerate(self._places):
                note = there.why_not() or self._shares[number].lacking(resources)
                notes.append(f"{there.name}: {note}" if note else "")
            lacking = [note for note in notes if note]
            if len(notes) - len(lacking) >= resources.nodes:
                return f"{place}; waiting for its turn"
            nodes = f"waiting for {resources.nodes} hosts; " if resources.nodes > 1 else ""
            return f"{place}; {nodes}{'; '.join(lacking)}"

    def on_host(self, number: int) -> list[str]:
        """The runs that hold something of a host."""
        with self._lock:
            return [run_id for run_id, placed in self._placed.items() if number in placed.nodes]

    def _placed_now(self, run_id: str, resources: Resources) -> Placement | None:
        """Where the first in line goes, if there is room for it: on the hosts with the most processors to spare."""
        free = [
            number
            for number, place in enumerate(self._places)
            if not place.why_not() and not self._shares[number].lacking(resources)
        ]
        free.sort(key=lambda number: (-self._shares[number].free_cpus, number))
        chosen = tuple(sorted(free[: resources.nodes]))
        if len(chosen) < resources.nodes:
            return None
        gpus = self._common_gpus(chosen, resources)
        if gpus is None:
            return None
        self._line.leave(run_id)
        placement = Placement(run_id, gpus, chosen)
        self._take(placement, resources)
        return placement

    def _common_gpus(self, hosts: tuple[int, ...], resources: Resources) -> tuple[int, ...] | None:
        """The processes of a gang are told of their GPUs in one breath: the same numbers on each host."""
        wanted = max(self._shares[number].gpu_count(resources) for number in hosts)
        free = [self._shares[number].free_gpus(resources) for number in hosts]
        common = tuple(index for index in free[0] if all(index in other for other in free[1:]))
        return common[:wanted] if len(common) >= wanted else None

    def _take(self, placement: Placement, resources: Resources) -> None:
        self._placed[placement.run_id] = placement
        for number in placement.nodes:
            if number < len(self._shares):
                self._shares[number].take(placement.run_id, placement.gpus, resources)
