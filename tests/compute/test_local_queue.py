"""The queue of the yard's machine: first come, first served."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.compute.scheduling.machine_pool import YardMachine
from runyard.compute.scheduling.queue import Placement, Queue
from runyard.errors import ComputeTargetException
from runyard.posix.machine import Capacity, Gpu
from runyard.spec.resources import Resources

TWO_CORES = Capacity(cpus=2, memory_gb=8.0)
FOUR_GPUS = Capacity(cpus=16, memory_gb=64.0, gpus=tuple(Gpu(index) for index in range(4)))


def local_queue(capacity):
    return Queue(YardMachine("local", capacity))


def fit(resources, capacity):
    return local_queue(capacity).fit(resources)


def ids(placements):
    return [placement.run_id for placement in placements]


def test_runs_start_in_the_order_of_their_requests():
    queue = local_queue(TWO_CORES)
    for name in "abcde":
        queue.enqueue(name, Resources())
    assert ids(queue.place()) == ["a", "b"]
    assert queue.place() == []
    queue.leave("b")
    assert ids(queue.place()) == ["c"]


def test_the_waiting_reason_has_position_need_and_holders():
    queue = local_queue(TWO_CORES)
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        queue.enqueue(name, Resources())
    queue.place()
    assert queue.waiting_reason("e") == "position 3 of 5; waiting for 1 CPU; 2 of 2 in use by a, b"
    queue.leave("d")
    assert queue.waiting_reason("e").startswith("position 2 of 4;")
    assert queue.waiting_reason("a") == ""
    assert queue.waiting_reason("unknown") == ""


def test_the_first_run_is_not_overtaken_by_a_smaller_one():
    queue = local_queue(TWO_CORES)
    queue.enqueue("small", Resources())
    queue.enqueue("big", Resources(cpus_per_process=2))
    queue.enqueue("tiny", Resources())
    assert ids(queue.place()) == ["small"]
    assert queue.waiting_reason("tiny") == "position 2 of 2; waiting for its turn"
    queue.leave("small")
    assert ids(queue.place()) == ["big"]


def test_two_runs_never_share_a_gpu():
    queue = local_queue(FOUR_GPUS)
    for name in "abc":
        queue.enqueue(name, Resources(gpus_per_process=2))
    assert queue.place() == [Placement("a", (0, 1)), Placement("b", (2, 3))]
    assert queue.waiting_reason("c") == "position 1 of 1; waiting for 2 GPUs; 4 of 4 in use by a, b"
    queue.leave("a")
    assert queue.place() == [Placement("c", (0, 1))]
    assert queue.placement("c") == Placement("c", (0, 1))


def test_sharing_runs_spread_out_and_avoid_exclusive_gpus():
    queue = local_queue(FOUR_GPUS)
    queue.enqueue("alone", Resources(gpus_per_process=2))
    for name in "abc":
        queue.enqueue(name, Resources(gpus_per_process=1, share_gpus=True))
    assert [p.gpus for p in queue.place()] == [(0, 1), (2,), (3,), (2,)]


def test_requested_memory_is_counted():
    queue = local_queue(TWO_CORES)
    queue.enqueue("a", Resources(memory_gb=6))
    queue.enqueue("b", Resources(memory_gb=4))
    assert ids(queue.place()) == ["a"]
    assert queue.waiting_reason("b") == "position 1 of 1; waiting for 4 GB of memory; 6 of 8 GB in use by a"


def test_more_processes_than_cpus_share_the_machine():
    resources, warnings = fit(Resources(processes_per_node=4), TWO_CORES)
    assert warnings == ("4 processes of 1 CPU share the 2 CPUs of this machine",)
    queue = local_queue(TWO_CORES)
    queue.enqueue("a", resources)
    queue.enqueue("b", Resources())
    assert ids(queue.place()) == ["a"]


def test_a_missing_gpu_is_a_warning():
    resources, warnings = fit(Resources(gpus_per_process=1), TWO_CORES)
    assert resources.gpus_per_process == 0
    assert warnings == ("a GPU was requested and this machine has none: running on the CPU",)
    assert fit(Resources(), TWO_CORES) == (Resources(), ())


@pytest.mark.parametrize(
    ("resources", "capacity", "message"),
    [
        (Resources(cpus_per_process=8), TWO_CORES, "requests 8 CPUs per process; this machine has 2"),
        (Resources(memory_gb=64), TWO_CORES, "requests 64 GB of memory; this machine has 8 GB"),
        (Resources(nodes=2), TWO_CORES, "requests 2 nodes; 'local' is one machine"),
        (Resources(gpus_per_process=5), FOUR_GPUS, "requests 5 GPUs; this machine has 4"),
        (Resources(processes_per_node=5, gpus_per_process=1), FOUR_GPUS, "requests 5 GPUs; this machine has 4"),
    ],
)
def test_a_run_that_can_never_start_is_refused_with_a_hint(resources, capacity, message):
    with pytest.raises(ComputeTargetException) as caught:
        fit(resources, capacity)
    assert caught.value.message == f"the run {message}"
    assert caught.value.hint


def test_a_running_run_is_adopted_with_its_gpus():
    queue = local_queue(FOUR_GPUS)
    queue.adopt("old", Resources(gpus_per_process=3), Placement("old", (1, 2, 3)))
    queue.adopt("old", Resources(gpus_per_process=3), Placement("old", (1, 2, 3)))
    queue.enqueue("new", Resources(gpus_per_process=1))
    queue.enqueue("next", Resources(gpus_per_process=1))
    assert queue.place() == [Placement("new", (0,))]
    queue.leave("old")
    queue.leave("old")
    assert queue.place() == [Placement("next", (1,))]


def test_the_cost_per_run_does_not_grow_with_the_queue():
    def seconds_per_run(length):
        queue = local_queue(TWO_CORES)
        began = time.perf_counter()
        for n in range(length):
            queue.enqueue(f"run_{n}", Resources())
            queue.place()
            queue.waiting_reason(f"run_{n}")
        for n in range(length):
            queue.leave(f"run_{n}")
            queue.place()
        return (time.perf_counter() - began) / length

    short = min(seconds_per_run(100) for _ in range(5))
    assert seconds_per_run(10_000) < 10 * short


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["enqueue", "leave", "place"]),
            st.integers(0, 7),
            st.integers(0, 3),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_resources_are_neither_assigned_twice_nor_lost(steps):
    queue = local_queue(FOUR_GPUS)
    placed, sharing = {}, {}
    for verb, number, gpus, share in steps:
        run_id = f"run_{number}"
        if verb == "enqueue":
            if run_id not in placed and not queue.waiting_reason(run_id):
                sharing[run_id] = share
            queue.enqueue(run_id, Resources(gpus_per_process=gpus, cpus_per_process=2, share_gpus=share))
        elif verb == "leave":
            queue.leave(run_id)
            placed.pop(run_id, None)
        else:
            placed.update((p.run_id, p.gpus) for p in queue.place())
        for first, second in itertools.combinations(placed, 2):
            if not (sharing[first] and sharing[second]):
                assert not set(placed[first]) & set(placed[second])
    for number in range(8):
        queue.leave(f"run_{number}")
    queue.enqueue("last", Resources(gpus_per_process=4, cpus_per_process=16, memory_gb=64))
    assert queue.place() == [Placement("last", (0, 1, 2, 3))]


def test_two_runs_with_the_same_turn_are_both_placed() -> None:
    queue = local_queue(Capacity(cpus=2, memory_gb=1.0))
    for name in ("one", "other"):
        queue.enqueue(name, Resources(), turn=7)
    assert {placed.run_id for placed in queue.place()} == {"one", "other"}


def test_a_run_that_was_prepared_faster_does_not_overtake() -> None:
    queue = local_queue(Capacity(cpus=1, memory_gb=1.0))
    queue.enqueue("holds", Resources(), turn=1)
    assert queue.place_if_first("holds")
    for turn in (4, 2, 3):
        queue.enqueue(f"run {turn}", Resources(), turn=turn)
    started = []
    leaving = "holds"
    for _ in range(3):
        queue.leave(leaving)
        (placed,) = queue.place()
        leaving = placed.run_id
        started.append(leaving)
    assert started == ["run 2", "run 3", "run 4"]
