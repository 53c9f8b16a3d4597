"""Starts and stops the agents of runs, and reads the events that they record."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress

from runyard import clock
from runyard.compute.base import ProgressCallback
from runyard.compute.scheduling.queue import Placement
from runyard.errors import ComputeTargetException
from runyard.launch.order import read_attempt, read_order
from runyard.lifecycle.state import EndReason, RunState
from runyard.orchestrator import data
from runyard.orchestrator.agent_events import read_events
from runyard.orchestrator.components import Components
from runyard.orchestrator.prepare import RunEnvironments
from runyard.orchestrator.run_files import output_folders
from runyard.orchestrator.run_secrets import open_secrets, refill_private
from runyard.orchestrator.work_orders import create_order
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json
from runyard.spec.resources import Resources
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

_PREVIOUS_AGENT_TIMEOUT_S = 60.0
_POLL_S = 0.02


def enqueue(components: Components, record: RunRecord) -> None:
    components.target(record).queue.enqueue(record.run_id, _resources(components, record), turn=record.number)


def start(
    components: Components,
    record: RunRecord,
    environments: RunEnvironments,
    report: ProgressCallback,
    canceled: threading.Event,
) -> None:
    """Write the working copy and the order, and start the agent. Does nothing if the run has one."""
    folder, target, handle = components.folder(record.run_id), components.target(record), components.handle(record)
    _wait_for_previous_agent(components, record)
    # the status is that of the last submitted attempt, which may be the previous one
    has_agent = is_submitted(folder, record) and target.compute.status([handle])
    if _has_events(folder, record):
        adopt(components, record)
        return
    if has_agent:
        adopt(components, record)
        _restart(components, record)
        return
    if target.queue.placement(record.run_id) is None and is_submitted(folder, record):
        adopt(components, record)  # a yard was killed before it had an agent: use the same nodes again
    run_secrets = open_secrets(components, record)  # before anything is written: one may have been deleted
    placement = target.queue.placement(record.run_id) or Placement(record.run_id)
    environment = environments.take(record, placement)
    outputs = [*(name for name, _ in output_folders(components, record)), *data.upload_folders(record)]
    is_retry = bool(record.life.earlier_attempts)
    if is_retry:  # the outputs of earlier attempts are available to this one, wherever it runs
        target.compute.collect(handle, outputs)
    _write_working_copy(components, record, folder)
    data_paths = data.stage(components, record, placement, report, canceled)
    order = create_order(components, record, environment, placement, data_paths, run_secrets)
    digests = None
    if target.compute.copies_code:
        replaced = [*data.paths_in_working_copy(record), *(outputs if is_retry else ())]
        digests = _code_digests(components, record, replaced)
    target.compute.start(order, digests)


def adopt(components: Components, record: RunRecord) -> None:
    """Reserve the resources of a run that an earlier yard started."""
    folder, queue = components.folder(record.run_id), components.target(record).queue
    placement = Placement(record.run_id)
    with suppress(OSError, ValueError):  # there is none, or its script has damaged it
        order = read_order(folder.order)
        placement = Placement(record.run_id, order.gpus, queue.strategy.node_indices(order.nodes))
    queue.adopt(record.run_id, _resources(components, record), placement)


def stop(components: Components, record: RunRecord) -> None:
    reason = record.life.end.reason if record.life.end else EndReason.CANCELED
    components.target(record).compute.stop(components.handle(record), reason.value)


def loss_message(components: Components, record: RunRecord) -> str:
    """Explain why a run has no agent any longer."""
    folder = components.folder(record.run_id)
    with suppress(OSError, ValueError):
        started_in = read_order(folder.order).folder
        if started_in != str(folder.root) and components.target(record).compute.on_yard_machine:
            return (
                f"the yard's home was moved to {components.home} while the run was active in {started_in}, and its "
                "agent could not follow; its remaining processes were stopped"
            )
    return "the agent that supervised the run is gone; its remaining processes were stopped"


def expects_agent(components: Components, record: RunRecord) -> bool:
    """True if the target should know the run, also while the run waits in the target's own queue."""
    if record.life.state is RunState.QUEUED:
        return components.target(record).queue.placement(record.run_id) is not None
    return record.life.state in (RunState.STARTING, RunState.RUNNING, RunState.CANCEL_REQUESTED)


def is_submitted(folder: RunFolder, record: RunRecord) -> bool:
    """True if the order in the run's folder is that of the current attempt."""
    return read_attempt(folder.order) >= record.life.attempt


def _restart(components: Components, record: RunRecord) -> None:
    """Complete a start during which the yard was killed; agents that exist are found."""
    folder = components.folder(record.run_id)
    try:
        order = read_order(folder.order)
    except (OSError, ValueError):  # damaged by its script: all of its agents have started
        return
    if (order.run_id, order.folder) != (record.run_id, str(folder.root)):
        return
    try:
        components.target(record).compute.start(refill_private(components, record, order))
    except ComputeTargetException as error:
        if not error.facts.get("transient"):  # the state of the run is unknown: no conclusion
            raise


def _write_working_copy(components: Components, record: RunRecord, folder: RunFolder) -> None:
    if not (record.life.earlier_attempts and folder.order.exists()):  # earlier attempts left theirs, with outputs
        if folder.work.exists():  # of a yard that was killed before it started the agent
            shutil.rmtree(folder.work)
        assert record.snapshot_id is not None
        components.snapshots.materialize(record.snapshot_id, folder.work)
    for name in ("outputs", "logs"):
        (folder.work / name).mkdir(exist_ok=True)


def _code_digests(components: Components, record: RunRecord, replaced: list[str]) -> dict[str, str]:
    """The digests of the snapshot's files, without those below paths whose files may have been replaced."""
    assert record.snapshot_id is not None
    prefixes = tuple(f"{path.rstrip('/')}/" for path in replaced)
    files = components.snapshots.manifest(record.snapshot_id).files
    return {file.path: file.digest for file in files if not f"{file.path}/".startswith(prefixes)}


def _wait_for_previous_agent(components: Components, record: RunRecord) -> None:
    """The agent of the previous attempt has recorded its end, and exits within moments."""
    attempt, folder, handle = record.life.attempt, components.folder(record.run_id), components.handle(record)
    deadline = clock.monotonic() + _PREVIOUS_AGENT_TIMEOUT_S
    while attempt > 1 and folder.order.exists() and not is_submitted(folder, record):
        agent = components.target(record).compute.status([handle]).get(handle)
        if agent is None or agent.waiting_reason is not None:
            return
        if clock.monotonic() > deadline:
            raise ComputeTargetException(
                f"attempt {attempt} of {record.run_id} cannot start: the agent of the previous attempt does not exit",
                hint="cancel it with `runyard cancel`, and see agent.log in its folder",
            )
        time.sleep(_POLL_S)


def _has_events(folder: RunFolder, record: RunRecord) -> bool:
    return any(getattr(event, "attempt", 0) >= record.life.attempt for event, _ in read_events(folder))


def _resources(components: Components, record: RunRecord) -> Resources:
    return components.target(record).queue.fit(from_json(RunSpec, record.spec).resources)[0]
