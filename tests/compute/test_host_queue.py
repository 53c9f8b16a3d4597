"""Who may start on which host: pure, so that it can be tried with hosts that nobody has."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from runyard.compute.base import Capacity, Gpu
from runyard.compute.scheduling.machine_pool import Machine, MachinePool
from runyard.compute.scheduling.queue import Placement, Queue
from runyard.errors import ComputeTargetException
from runyard.spec.resources import Resources


def queue_of(*capacities: Capacity, away: Iterable[int] = ()) -> Queue:
    machines = [
        Machine(f"h{n}", capacity, unavailable=(lambda: "cannot be reached") if n in set(away) else (lambda: ""))
        for n, capacity in enumerate(capacities, start=1)
    ]
    return Queue(MachinePool("lab", machines))


def placed(queue: Queue, run_id: str, **asked: object) -> Placement | None:
    queue.enqueue(run_id, queue.fit(Resources(**asked))[0])
    queue.place()
    return queue.placement(run_id)


SMALL = Capacity(cpus=2, memory_gb=4)
LARGE = Capacity(cpus=8, memory_gb=64)


def test_single_runs_go_where_the_most_processors_are_free_and_share_a_host() -> None:
    queue = queue_of(SMALL, LARGE)
    nodes = [placed(queue, f"run_{n}", cpus_per_process=2).nodes for n in range(5)]
    assert nodes == [(1,), (1,), (1,), (0,), (1,)]
    assert placed(queue, "run_5") is None
    assert queue.waiting_reason("run_5").startswith(
        "position 1 of 1; h1: waiting for 1 CPU; 2 of 2 in use by run_3; h2:"
    )
    queue.leave("run_3")
    assert [placement.nodes for placement in queue.place()] == [(0,)]


def test_a_gang_takes_a_host_for_each_node_and_is_not_overtaken() -> None:
    queue = queue_of(SMALL, SMALL, SMALL)
    assert placed(queue, "first", cpus_per_process=2).nodes == (0,)
    assert placed(queue, "gang", nodes=3) is None
    assert "waiting for 3 hosts" in queue.waiting_reason("gang")
    assert placed(queue, "later") is None
    queue.leave("first")
    assert [p.run_id for p in queue.place()] == ["gang", "later"]
    assert queue.placement("gang").nodes == (0, 1, 2)


def test_a_host_that_is_away_is_passed_over_and_named_to_those_who_wait() -> None:
    queue = queue_of(SMALL, SMALL, away=[1])
    assert placed(queue, "one", cpus_per_process=2).nodes == (1,)
    assert placed(queue, "two") is None
    assert "h1: cannot be reached" in queue.waiting_reason("two")


def test_the_processes_of_a_gang_have_the_same_gpu_numbers_on_every_host() -> None:
    has = Capacity(8, 64, gpus=(Gpu(0), Gpu(1), Gpu(2)))
    queue = queue_of(has, has)
    assert placed(queue, "single", gpus_per_process=1).gpus == (0,)
    gang = placed(queue, "gang", nodes=2, gpus_per_process=2)
    assert (gang.nodes, gang.gpus) == ((0, 1), (1, 2))


def test_what_no_host_can_give_is_refused_with_its_name() -> None:
    with pytest.raises(ComputeTargetException, match=r"requests 3 nodes; 'lab' has 2: h1, h2"):
        queue_of(SMALL, SMALL).fit(Resources(nodes=3))
    with pytest.raises(ComputeTargetException, match=r"requests 9 CPUs per process; h2 has 8"):
        queue_of(SMALL, LARGE).fit(Resources(cpus_per_process=9))
    # one host that fits is enough for a single run, not for two nodes
    assert queue_of(SMALL, LARGE).fit(Resources(cpus_per_process=8))[1] == ()
    with pytest.raises(ComputeTargetException, match="h1 has 2"):
        queue_of(SMALL, LARGE).fit(Resources(nodes=2, cpus_per_process=8))


def test_a_run_that_a_former_yard_placed_keeps_its_host() -> None:
    queue = queue_of(SMALL, SMALL)
    queue.adopt("old", Resources(cpus_per_process=2), Placement("old", nodes=(0,)))
    assert placed(queue, "new").nodes == (1,)
    assert queue.placement("old") == Placement("old", nodes=(0,))


def test_two_hundred_runs_wait_in_the_order_of_their_turns_and_all_have_theirs() -> None:
    queue = queue_of(SMALL, SMALL, SMALL)
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
