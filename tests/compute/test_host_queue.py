"""Placement on SSH hosts. Pure, so no hosts are needed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from runyard.compute.scheduling.machine_pool import Machine, MachinePool
from runyard.compute.scheduling.queue import Placement, Queue
from runyard.errors import ComputeTargetException
from runyard.posix.machine import Capacity, Gpu
from runyard.spec.resources import Resources


def host_queue(*capacities: Capacity, unreachable: Iterable[int] = ()) -> Queue:
    machines = [
        Machine(f"h{n}", capacity, unavailable=(lambda: "cannot be reached") if n in set(unreachable) else (lambda: ""))
        for n, capacity in enumerate(capacities, start=1)
    ]
    return Queue(MachinePool("lab", machines))


def place(queue: Queue, run_id: str, **resources: object) -> Placement | None:
    queue.enqueue(run_id, queue.fit(Resources(**resources))[0])
    queue.place()
    return queue.placement(run_id)


SMALL = Capacity(cpus=2, memory_gb=4)
LARGE = Capacity(cpus=8, memory_gb=64)


def test_single_runs_share_the_host_with_the_most_free_cpus() -> None:
    queue = host_queue(SMALL, LARGE)
    nodes = [place(queue, f"run_{n}", cpus_per_process=2).nodes for n in range(5)]
    assert nodes == [(1,), (1,), (1,), (0,), (1,)]
    assert place(queue, "run_5") is None
    assert queue.waiting_reason("run_5").startswith(
        "position 1 of 1; h1: waiting for 1 CPU; 2 of 2 in use by run_3; h2:"
    )
    queue.leave("run_3")
    assert [placement.nodes for placement in queue.place()] == [(0,)]


def test_a_gang_takes_one_host_per_node_and_is_not_overtaken() -> None:
    queue = host_queue(SMALL, SMALL, SMALL)
    assert place(queue, "first", cpus_per_process=2).nodes == (0,)
    assert place(queue, "gang", nodes=3) is None
    assert "waiting for 3 hosts" in queue.waiting_reason("gang")
    assert place(queue, "later") is None
    queue.leave("first")
    assert [p.run_id for p in queue.place()] == ["gang", "later"]
    assert queue.placement("gang").nodes == (0, 1, 2)


def test_an_unreachable_host_is_skipped_and_named() -> None:
    queue = host_queue(SMALL, SMALL, unreachable=[1])
    assert place(queue, "one", cpus_per_process=2).nodes == (1,)
    assert place(queue, "two") is None
    assert "h1: cannot be reached" in queue.waiting_reason("two")


def test_a_gang_has_the_same_gpu_indices_on_every_host() -> None:
    capacity = Capacity(8, 64, gpus=(Gpu(0), Gpu(1), Gpu(2)))
    queue = host_queue(capacity, capacity)
    assert place(queue, "single", gpus_per_process=1).gpus == (0,)
    gang = place(queue, "gang", nodes=2, gpus_per_process=2)
    assert (gang.nodes, gang.gpus) == ((0, 1), (1, 2))


def test_a_run_that_fits_no_host_is_refused() -> None:
    with pytest.raises(ComputeTargetException, match=r"requests 3 nodes; 'lab' has 2: h1, h2"):
        host_queue(SMALL, SMALL).fit(Resources(nodes=3))
    with pytest.raises(ComputeTargetException, match=r"requests 9 CPUs per process; h2 has 8"):
        host_queue(SMALL, LARGE).fit(Resources(cpus_per_process=9))
    # one host that fits is enough for a single run, not for two nodes
    assert host_queue(SMALL, LARGE).fit(Resources(cpus_per_process=8))[1] == ()
    with pytest.raises(ComputeTargetException, match="h1 has 2"):
        host_queue(SMALL, LARGE).fit(Resources(nodes=2, cpus_per_process=8))


def test_an_adopted_run_keeps_its_host() -> None:
    queue = host_queue(SMALL, SMALL)
    queue.adopt("old", Resources(cpus_per_process=2), Placement("old", nodes=(0,)))
    assert place(queue, "new").nodes == (1,)
    assert queue.placement("old") == Placement("old", nodes=(0,))


def test_two_hundred_runs_are_placed_in_the_order_of_their_turns() -> None:
    queue = host_queue(SMALL, SMALL, SMALL)
    for number in reversed(range(200)):
        queue.enqueue(f"run_{number}", Resources(), turn=number)
    order = []
    while queue.runs():
        for placement in queue.place():
            order.append(placement.run_id)
        queue.leave(order[-1])
        for run_id in order:
            queue.leave(run_id)
    assert order == [f"run_{number}" for number in range(200)]
