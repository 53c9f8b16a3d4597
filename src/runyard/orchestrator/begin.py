"""Starting a run on its target, stopping it, and reading what its agent wrote."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator

from runyard.compute.base import Handle
from runyard.compute.placing import Placement
from runyard.launch.order import WorkOrder
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.orchestrator.ordering import order_of
from runyard.orchestrator.rooms import Rooms
from runyard.spec.json import from_json
from runyard.spec.resources import Resources
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord


def enqueue(rooms: Rooms, record: RunRecord) -> None:
    rooms.target(record).queue.ask(record.run_id, _resources(rooms, record), turn=record.number)


def start(rooms: Rooms, record: RunRecord) -> None:
    """Writes the working copy and the order, then asks for an agent. A run that has one already is left alone."""
    folder, target = rooms.folder(record.run_id), rooms.target(record)
    if target.compute.status([handle_of(rooms, record)]) or _has_begun(rooms, record.run_id):
        take_up(rooms, record)
        return
    spec = from_json(RunSpec, record.spec)
    prepared = rooms.environments.prepare(
        spec.environment,
        has_gpu=bool(target.compute.capacity().gpus),
        say=lambda text: None,  # it was said when the environment was prepared
        abandoned=threading.Event(),
        run_folder=folder.root,
        kit=rooms.kit,
        run_id=record.run_id,
    )
    assert record.snapshot_id is not None
    if folder.work.exists():  # laid out by a yard that was killed before it asked for an agent
        shutil.rmtree(folder.work)
    rooms.snapshots.materialize(record.snapshot_id, folder.work)
    for name in ("outputs", "logs"):
        (folder.work / name).mkdir(exist_ok=True)
    placement = target.queue.placement(record.run_id) or Placement(record.run_id)
    target.compute.start(order_of(rooms, record, prepared, placement))


def take_up(rooms: Rooms, record: RunRecord) -> None:
    """A run that a former yard started holds its share of the target without asking again."""
    folder = rooms.folder(record.run_id)
    placement = Placement(record.run_id)
    if folder.order.exists():
        order = from_json(WorkOrder, json.loads(folder.order.read_bytes()))
        numbers = tuple(int(node.name.rpartition("-")[2]) for node in order.nodes if node.name.startswith("node-"))
        placement = Placement(record.run_id, order.gpus, numbers or (0,))
    rooms.target(record).queue.adopt(record.run_id, _resources(rooms, record), placement)


def stop(rooms: Rooms, record: RunRecord) -> None:
    reason = record.life.end.reason if record.life.end else EndReason.CANCELED
    rooms.target(record).compute.stop(handle_of(rooms, record), reason.value)


def news(rooms: Rooms, run_id: str) -> Iterator[tuple[on.Event | None, tuple[str, ...]]]:
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
            yield on.ScriptStarted(), ()
        elif said["event"] == "script_ended":
            yield on.ScriptEnded(from_json(End, said["end"])), ()
        elif said["event"] == "launch_failed":
            yield on.LaunchFailed(from_json(End, said["end"])), ()
        elif said["event"] == "stalled":
            where = "; ".join(f"rank {rank}: {place}" for rank, place in sorted(said["ranks"].items()))
            yield None, (f"nothing moved any more, see logs/stalled/: {where}",)
        elif "warning" in said:
            yield None, (str(said["warning"]),)


def handle_of(rooms: Rooms, record: RunRecord) -> Handle:
    return Handle(record.run_id, str(rooms.folder(record.run_id).root))


def expects_agent(state: RunState) -> bool:
    return state in (RunState.STARTING, RunState.RUNNING, RunState.CANCEL_REQUESTED)


def _has_begun(rooms: Rooms, run_id: str) -> bool:
    return next(news(rooms, run_id), None) is not None


def _resources(rooms: Rooms, record: RunRecord) -> Resources:
    return rooms.target(record).queue.fit(from_json(RunSpec, record.spec).resources)[0]
