"""Starting a run on its target, stopping it, and reading what its agent wrote."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator

from runyard.compute.base import Handle
from runyard.compute.queue import fit
from runyard.launch.argv import script_words
from runyard.launch.order import WorkOrder
from runyard.launch.variables import clean, run_variables
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.orchestrator.rooms import Rooms
from runyard.spec.json import from_json
from runyard.spec.resources import Resources
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord


def enqueue(rooms: Rooms, record: RunRecord) -> None:
    rooms.queue.ask(record.run_id, _resources(rooms, record))


def start(rooms: Rooms, record: RunRecord) -> None:
    """Writes the working copy and the order, then asks for an agent. A run that has one already is left alone."""
    folder = rooms.folder(record.run_id)
    handle = handle_of(rooms, record)
    if rooms.compute.status([handle]) or _has_begun(rooms, record.run_id):
        take_up(rooms, record)
        return
    spec = from_json(RunSpec, record.spec)
    prepared = rooms.environments.prepare(
        spec.environment,
        has_gpu=bool(rooms.compute.capacity().gpus),
        say=lambda text: None,  # it was said when the environment was prepared
        abandoned=threading.Event(),
        run_folder=folder.root,
        kit=rooms.kit,
        run_id=record.run_id,
    )
    assert record.snapshot_id is not None
    rooms.snapshots.materialize(record.snapshot_id, folder.work)
    for name in ("outputs", "logs"):
        (folder.work / name).mkdir(exist_ok=True)
    placement = rooms.queue.placement(record.run_id)
    gpus = placement.gpus if placement else ()
    own = run_variables(
        run_id=record.run_id,
        experiment=record.experiment,
        spec=spec,
        folder=folder,
        kit=rooms.kit,
        home=rooms.home,
        gpus=gpus if rooms.compute.capacity().gpus else None,
        yard_python=sys.executable,
        socket=str(rooms.socket),
    )
    argv, variables = prepared.command(script_words(spec), own, folder.work, inherited=clean(os.environ))
    order = WorkOrder(
        run_id=record.run_id,
        folder=str(folder.root),
        argv=argv,
        variables=variables,
        grace_s=spec.grace_s,
        max_run_duration_seconds=spec.max_run_duration_seconds,
        memory_limit_gb=spec.resources.memory_gb,
        yard_socket=str(rooms.socket),
        stop_argv=prepared.stop_argv,
        gpus=gpus,
    )
    rooms.compute.start(order)


def take_up(rooms: Rooms, record: RunRecord) -> None:
    """A run that a former yard started holds its share of the machine without asking again."""
    folder = rooms.folder(record.run_id)
    gpus: tuple[int, ...] = ()
    if folder.order.exists():
        gpus = from_json(WorkOrder, json.loads(folder.order.read_bytes())).gpus
    rooms.queue.adopt(record.run_id, _resources(rooms, record), gpus)


def stop(rooms: Rooms, record: RunRecord) -> None:
    reason = record.life.end.reason if record.life.end else EndReason.CANCELED
    rooms.compute.stop(handle_of(rooms, record), reason.value)


def news(rooms: Rooms, run_id: str) -> Iterator[on.Event]:
    """Everything that the agent wrote so far, from the beginning: it is three lines, and old ones change nothing."""
    path = rooms.folder(run_id).events
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:  # half a line of an agent that was killed while it wrote
            continue
        if said["event"] == "script_started":
            yield on.ScriptStarted()
        elif said["event"] == "script_ended":
            yield on.ScriptEnded(from_json(End, said["end"]))
        elif said["event"] == "launch_failed":
            yield on.LaunchFailed(from_json(End, said["end"]))


def handle_of(rooms: Rooms, record: RunRecord) -> Handle:
    return Handle(record.run_id, str(rooms.folder(record.run_id).root))


def expects_agent(state: RunState) -> bool:
    return state in (RunState.STARTING, RunState.RUNNING, RunState.CANCEL_REQUESTED)


def _has_begun(rooms: Rooms, run_id: str) -> bool:
    return next(news(rooms, run_id), None) is not None


def _resources(rooms: Rooms, record: RunRecord) -> Resources:
    return fit(from_json(RunSpec, record.spec).resources, rooms.compute.capacity())[0]
