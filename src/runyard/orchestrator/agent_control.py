"""Starting a run on its target, stopping it, and reading what its agent wrote."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator

from runyard import clock
from runyard.compute.base import Handle
from runyard.compute.scheduling.queue import Placement
from runyard.errors import ComputeTargetException
from runyard.launch.order import read_order
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.lifecycle.warning import RunWarning
from runyard.orchestrator import data
from runyard.orchestrator import placement as ground
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.run_files import written_folders
from runyard.orchestrator.work_orders import order_of
from runyard.spec.json import from_json
from runyard.spec.resources import Resources
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

_LETS_GO_S = 60.0
_LOOK_S = 0.02


def enqueue(rooms: Rooms, record: RunRecord) -> None:
    rooms.target(record).queue.ask(record.run_id, _resources(rooms, record), turn=record.number)


def start(rooms: Rooms, record: RunRecord, say: ground.Say, abandoned: threading.Event) -> None:
    """Writes the working copy and the order, then asks for an agent. A run that has one already is left alone."""
    folder, target = rooms.folder(record.run_id), rooms.target(record)
    _let_go(rooms, record)
    # what a target says is of the attempt that was handed over last: it may be the one before
    is_there = is_handed_over(rooms, record) and target.compute.status([handle_of(rooms, record)])
    if _has_begun(rooms, record):
        take_up(rooms, record)
        return
    if is_there:
        take_up(rooms, record)
        _ask_again(rooms, record)
        return
    if target.queue.placement(record.run_id) is None and is_handed_over(rooms, record):
        take_up(rooms, record)  # by a yard that was killed before it had an agent: on the same nodes, with its share
    placement = target.queue.placement(record.run_id) or Placement(record.run_id)
    # its steps were said when it was prepared
    ready = ground.prepare(rooms, record, lambda text: None, threading.Event(), placement)
    assert record.snapshot_id is not None
    if record.life.earlier:  # what they wrote goes along to wherever this one is
        names = [*(name for name, _ in written_folders(rooms, record)), *data.uploaded_folders(record)]
        target.compute.collect(handle_of(rooms, record), names)
    if not (record.life.earlier and folder.order.exists()):  # else it is there, with what earlier attempts wrote
        if folder.work.exists():  # laid out by a yard that was killed before it asked for an agent
            shutil.rmtree(folder.work)
        rooms.snapshots.materialize(record.snapshot_id, folder.work)
    for name in ("outputs", "logs"):
        (folder.work / name).mkdir(exist_ok=True)
    given = data.lay_out(rooms, record, placement, say, abandoned)
    target.compute.start(order_of(rooms, record, ready, placement, given))


def _ask_again(rooms: Rooms, record: RunRecord) -> None:
    """A yard that was killed while it asked for the agent may not have come to the end: whoever is there is found."""
    try:
        rooms.target(record).compute.start(read_order(rooms.folder(record.run_id).order))
    except ComputeTargetException as error:
        if not error.facts.get("passing"):  # else nothing is known of it, and nothing is concluded
            raise


def take_up(rooms: Rooms, record: RunRecord) -> None:
    """A run that a former yard started holds its share of the target without asking again."""
    folder = rooms.folder(record.run_id)
    placement = Placement(record.run_id)
    if folder.order.exists():
        order = read_order(folder.order)
        placement = Placement(record.run_id, order.gpus, ground.numbers(rooms.target(record), order.nodes))
    rooms.target(record).queue.adopt(record.run_id, _resources(rooms, record), placement)


def stop(rooms: Rooms, record: RunRecord) -> None:
    reason = record.life.end.reason if record.life.end else EndReason.CANCELED
    rooms.target(record).compute.stop(handle_of(rooms, record), reason.value)


def news(rooms: Rooms, run_id: str) -> Iterator[tuple[on.Event | None, tuple[RunWarning, ...]]]:
    """What the agent wrote so far, as events, with warnings beside them.

    Read from the beginning: it is a few lines, and old ones change nothing.
    """
    path = rooms.folder(run_id).events
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:  # half a line of an agent that was killed while it wrote
            continue
        if said["event"] == "script_started":
            yield on.ScriptStarted(attempt=said.get("attempt", 1)), ()
        elif said["event"] == "script_ended":
            yield on.ScriptEnded(from_json(End, said["end"]), said.get("attempt", 1)), ()
        elif said["event"] == "launch_failed":
            yield on.LaunchFailed(from_json(End, said["end"]), said.get("attempt", 1)), ()
        elif said["event"] == "stalled":
            where = "; ".join(f"rank {rank}: {place}" for rank, place in sorted(said["ranks"].items()))
            yield None, (RunWarning(f"nothing moved any more, see logs/stalled/: {where}"),)
        elif "warning" in said:
            yield None, (RunWarning(str(said["warning"])),)


def handle_of(rooms: Rooms, record: RunRecord) -> Handle:
    return Handle(record.run_id, str(rooms.folder(record.run_id).root))


def expects_agent(rooms: Rooms, record: RunRecord) -> bool:
    """Also of a run that was handed over to its target's own line: as long as it waits there, the target says so."""
    if record.life.state is RunState.QUEUED:
        return rooms.target(record).queue.placement(record.run_id) is not None
    return record.life.state in (RunState.STARTING, RunState.RUNNING, RunState.CANCEL_REQUESTED)


def _let_go(rooms: Rooms, record: RunRecord) -> None:
    """The agent of the attempt before has said its last word; it holds the run for a moment longer."""
    attempt = record.life.attempt
    deadline = clock.monotonic() + _LETS_GO_S
    while attempt > 1 and rooms.folder(record.run_id).order.exists() and not is_handed_over(rooms, record):
        handle = handle_of(rooms, record)
        agent = rooms.target(record).compute.status([handle]).get(handle)
        if agent is None or agent.waiting is not None:
            return
        if clock.monotonic() > deadline:
            raise ComputeTargetException(
                f"attempt {attempt} of {record.run_id} cannot begin: the agent of the one before does not end",
                hint="`runyard cancel` it, and look into agent.log in its folder",
            )
        time.sleep(_LOOK_S)


def is_handed_over(rooms: Rooms, record: RunRecord) -> bool:
    """Whether the order that its agent reads is of this attempt."""
    order = rooms.folder(record.run_id).order
    return order.exists() and json.loads(order.read_bytes()).get("attempt", 1) >= record.life.attempt


def _has_begun(rooms: Rooms, record: RunRecord) -> bool:
    return any(getattr(event, "attempt", 0) >= record.life.attempt for event, _ in news(rooms, record.run_id))


def _resources(rooms: Rooms, record: RunRecord) -> Resources:
    return rooms.target(record).queue.fit(from_json(RunSpec, record.spec).resources)[0]
