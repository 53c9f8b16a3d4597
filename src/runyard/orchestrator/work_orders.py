"""From a run and its prepared Python to the order for its agents: rendered first, sent afterwards."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from runyard.compute.local.compute import LocalCompute
from runyard.compute.scheduling.queue import Placement
from runyard.environments.container import ContainerPrepared
from runyard.environments.manager import Prepared
from runyard.launch.argv import script_argv
from runyard.launch.order import WorkOrder
from runyard.launch.plan import describe
from runyard.launch.variables import attempt_variables, run_variables
from runyard.orchestrator import data
from runyard.orchestrator import placement as ground
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.data import Given
from runyard.orchestrator.dataset_versions import inputs_told
from runyard.orchestrator.placement import Ready
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import from_json
from runyard.spec.launch import Mpi
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord


def order_of(
    rooms: Rooms,
    record: RunRecord,
    ready: Ready,
    placement: Placement,
    given: Given,
    machine: Mapping[str, str] | None = None,
) -> WorkOrder:
    """The lead's order; those of the other nodes differ in their rank alone. `machine`: the variables found there."""
    prepared = data.shown_to(ready.prepared, given)
    spec = data.written(record, given)
    folder = rooms.folder(record.run_id)
    target = rooms.target(record)
    own = run_variables(
        run_id=record.run_id,
        experiment=record.experiment,
        spec=spec,
        folder=folder,
        node_package=rooms.kit,
        home=rooms.home,
        gpus=ground.gpus(target, placement),
        yard_python=sys.executable,
        socket=str(rooms.socket),
        tracking=rooms.address() if isinstance(target.compute, LocalCompute) else None,
    )
    own.update(attempt_variables(record.life.attempt, folder))
    own.update(data.variables(record, given))
    if spec.data:
        own["RUNYARD_INPUT_DATASETS"] = inputs_told(rooms, spec)
    argv, variables = prepared.command(
        _words(spec, prepared), own, folder.work, inherited=ground.inherited(target) if machine is None else machine
    )
    return WorkOrder(
        run_id=record.run_id,
        folder=str(folder.root),
        argv=argv,
        variables=variables,
        grace_s=spec.grace_s,
        max_run_duration_seconds=spec.max_run_duration_seconds,
        memory_limit_gb=spec.resources.memory_gb,
        notify_socket=str(HomeFolder(rooms.home).notify_socket),
        stop_argv=prepared.stop_argv,
        gpus=placement.gpus,
        nodes=ground.nodes(target, spec, placement),
        resources=target.queue.fit(spec.resources)[0],
        launch=spec.launch,
        processes_per_node=spec.resources.processes_per_node,
        mpirun=ready.mpirun if isinstance(spec.launch, Mpi) else "",
        stall_after_s=spec.stall_after_s,
        stall_action=spec.stall_action,
        py_spy=_py_spy(),
        attempt=record.life.attempt,
        secret=_secret(folder),
        read_only=() if isinstance(prepared, ContainerPrepared) else given.shared,  # a container has its own way
        retry_reason=_retry_reason(record),
    )


def _words(spec: RunSpec, prepared: Prepared) -> tuple[str, ...]:
    """An exception that nobody catches under mpi4py waits for all other ranks to end; run by it, it aborts them."""
    by_mpi4py = isinstance(spec.launch, Mpi) and "\nmpi4py==" in f"\n{prepared.lock}"
    return ("-m", "mpi4py", *script_argv(spec)) if by_mpi4py else script_argv(spec)


def rehearse(rooms: Rooms, record: RunRecord) -> str:
    """Exactly what each process would get; nothing is written, built or started."""
    spec = from_json(RunSpec, record.spec)
    queue = rooms.target(record).queue
    resources, _ = queue.fit(spec.resources)
    python = spec.environment.interpreter if spec.environment.user_managed else None
    prepared = Prepared(
        key="",
        python=python or "<environment>/bin/python",
        path_entries=() if python else ("<environment>/bin",),
        variables=dict(spec.environment.variables),
    )
    placement = Placement(record.run_id, nodes=tuple(range(resources.nodes)))
    ready = Ready(prepared, f"{prepared.path_entries[0]}/mpirun" if prepared.path_entries else "mpirun")
    unlisted = replace(rooms, address=lambda: ("http://<this yard>", "<its token>"))  # what is shown is passed on
    given = data.rehearsed(record)
    order = order_of(unlisted, record, ready, placement, given, machine={"PATH": "<PATH of this machine>"})
    nodes = range(max(1, len(order.nodes)))
    job = rooms.target(record).compute.job_text(order)
    head = f"{job}\n" if job else ""
    return f"{head}# each process also gets the variables of this machine\n\n" + describe(
        [replace(order, node_rank=node_rank) for node_rank in nodes]
    )


def _secret(folder: RunFolder) -> str:
    """The same for every agent of a run, also for those that a yard which was killed did not come to start."""
    try:
        kept = json.loads(folder.order.read_bytes()).get("secret")
    except (OSError, ValueError):
        kept = None
    return kept or secrets.token_hex(32)


def _retry_reason(record: RunRecord) -> str:
    if not record.life.earlier_attempts:
        return ""
    end = record.life.earlier_attempts[-1].end
    return f"{end.reason.value} ({end.node})" if end.node else end.reason.value


def _py_spy() -> str:
    """The program that reads the stacks of a process which stands still; installed beside the yard's own Python."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy") or ""
