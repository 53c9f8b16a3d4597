"""Creates the order for the agents of a run from its specification and its prepared environment."""

from __future__ import annotations

import re
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from runyard.compute.scheduling.queue import Placement
from runyard.environments.container import ContainerPrepared
from runyard.environments.manager import Prepared
from runyard.launch.argv import script_argv
from runyard.launch.order import WorkOrder, read_order
from runyard.launch.plan import describe
from runyard.launch.variables import attempt_variables, run_variables
from runyard.lifecycle.state import EndReason
from runyard.orchestrator import data
from runyard.orchestrator.components import Components
from runyard.orchestrator.data import DataPaths
from runyard.orchestrator.dataset_versions import input_datasets
from runyard.orchestrator.prepare import RunEnvironment
from runyard.orchestrator.run_secrets import RunSecrets, masked_secrets, split_private
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import from_json
from runyard.spec.launch import Mpi, Single
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

_MLFLOW = re.compile(r"^(azureml-)?mlflow\b", re.MULTILINE | re.IGNORECASE)  # a line of an environment's packages


def create_order(
    components: Components,
    record: RunRecord,
    environment: RunEnvironment,
    placement: Placement,
    data_paths: DataPaths,
    run_secrets: RunSecrets,
    inherited: Mapping[str, str] | None = None,
) -> WorkOrder:
    """The order of the lead node; those of the other nodes differ only in their rank.

    ``inherited`` replaces the environment variables of the machine.
    """
    prepared = data.mount_in_container(environment.prepared, data_paths)
    spec = data.resolve_arguments(run_secrets.spec, record, data_paths)
    folder = components.folder(record.run_id)
    target = components.target(record)
    strategy = target.queue.strategy
    own_variables = run_variables(
        run_id=record.run_id,
        experiment=record.experiment,
        spec=spec,
        folder=folder,
        node_package=components.node_package,
        home=components.home,
        gpus=placement.gpus if strategy.assigns_gpus and target.compute.capacity().gpus else None,
        yard_python=sys.executable,
        socket=str(components.socket),
        tracking=_mlflow_server(components, record.run_id, spec, prepared) if target.compute.on_yard_machine else None,
    )
    own_variables.update(attempt_variables(record.life.attempt, folder))
    own_variables.update(data.variables(record, data_paths))
    if spec.data:
        own_variables["RUNYARD_INPUT_DATASETS"] = input_datasets(components.datasets, spec)
    own_variables.update(run_secrets.variables)
    if inherited is None:
        inherited = target.compute.inherited_variables()
    argv, variables = prepared.command(
        _script_arguments(spec, prepared), own_variables, folder.work, inherited=inherited
    )
    order = WorkOrder(
        run_id=record.run_id,
        folder=str(folder.root),
        argv=argv,
        variables=variables,
        grace_s=spec.grace_s,
        max_run_duration_seconds=spec.max_run_duration_seconds,
        memory_limit_gb=spec.resources.memory_gb,
        notify_socket=str(HomeFolder(components.home).notify_socket),
        stop_argv=prepared.stop_argv,
        gpus=placement.gpus,
        nodes=strategy.nodes(placement, is_gang=not isinstance(spec.launch, Single)),
        resources=target.queue.fit(spec.resources)[0],
        launch=spec.launch,
        processes_per_node=spec.resources.processes_per_node,
        mpirun=environment.mpirun if isinstance(spec.launch, Mpi) else "",
        stall_after_s=spec.stall_after_s,
        stall_action=spec.stall_action,
        py_spy=_py_spy(),
        attempt=record.life.attempt,
        secret=_secret(folder),
        read_only=() if isinstance(prepared, ContainerPrepared) else data_paths.shared,  # mounted read-only
        retry_reason=_retry_reason(record),
        lost_node=_lost_node(record),
    )
    return split_private(order, own_variables, inherited, run_secrets)


def _script_arguments(spec: RunSpec, prepared: Prepared) -> tuple[str, ...]:
    """With `-m mpi4py`, an uncaught exception aborts the other ranks; without it, the process waits for their end."""
    by_mpi4py = isinstance(spec.launch, Mpi) and "\nmpi4py==" in f"\n{prepared.lock}"
    return ("-m", "mpi4py", *script_argv(spec)) if by_mpi4py else script_argv(spec)


def _mlflow_server(components: Components, run_id: str, spec: RunSpec, prepared: Prepared) -> tuple[str, str] | None:
    """The yard's TCP address, opened only for runs that can use it: those with MLflow's client or settings for it."""
    requested = (*spec.environment.variables, *spec.environment_variables)
    uses_mlflow = _MLFLOW.search(prepared.lock) is not None or any(name.startswith("MLFLOW_") for name in requested)
    return components.address(run_id, uses_mlflow and "MLFLOW_TRACKING_URI" not in requested)


def render_dry_run(components: Components, record: RunRecord) -> str:
    """The exact command and variables of each process. Nothing is written, built or started."""
    spec = from_json(RunSpec, record.spec)
    target = components.target(record)
    resources, _ = target.queue.fit(spec.resources)
    python = spec.environment.interpreter if spec.environment.user_managed else None
    prepared = Prepared(
        key="",
        python=python or "<environment>/bin/python",
        path_entries=() if python else ("<environment>/bin",),
        variables=dict(spec.environment.variables),
    )
    placement = Placement(record.run_id, nodes=tuple(range(resources.nodes)))
    environment = RunEnvironment(prepared, f"{prepared.path_entries[0]}/mpirun" if prepared.path_entries else "mpirun")
    tracking = ("http://<this yard>", "<its token>")  # the text may be shared
    redacted = replace(components, address=lambda run_id, is_needed: tracking)
    path = {"PATH": "<PATH of this machine>"}
    data_paths, run_secrets = data.dry_run_paths(record), masked_secrets(spec)
    order = create_order(redacted, record, environment, placement, data_paths, run_secrets, inherited=path)
    nodes = range(max(1, len(order.nodes)))
    scheduler = target.compute.scheduler
    head = f"{scheduler.job_script(order)}\n" if scheduler is not None else ""
    return f"{head}# each process also gets the variables of this machine\n\n" + describe(
        [replace(order, node_rank=node_rank) for node_rank in nodes]
    )


def _secret(folder: RunFolder) -> str:
    """The same for every agent of a run, also for those that are started after a restart of the yard."""
    try:
        secret = read_order(folder.order).secret
    except (OSError, ValueError):
        secret = ""
    return secret or secrets.token_hex(32)


def _retry_reason(record: RunRecord) -> str:
    if not record.life.earlier_attempts:
        return ""
    end = record.life.earlier_attempts[-1].end
    return f"{end.reason.value} ({end.node})" if end.node else end.reason.value


def _lost_node(record: RunRecord) -> str:
    """The node whose loss ended the previous attempt."""
    end = record.life.earlier_attempts[-1].end if record.life.earlier_attempts else None
    return end.node or "" if end is not None and end.reason is EndReason.NODE_LOST else ""


def _py_spy() -> str:
    """The program that reads the stacks of a stalled process; installed next to the yard's Python."""
    installed = Path(sys.executable).parent / "py-spy"
    return str(installed) if installed.exists() else shutil.which("py-spy") or ""
