"""Deploys one version of a service: environment, code, models, workers."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.environments.manager import Prepared
from runyard.errors import WebserviceException
from runyard.launch.variables import PROCESS_TAG, clean_environment
from runyard.models.layout import create_model_folder
from runyard.models.registry import Models
from runyard.orchestrator.components import Components
from runyard.posix.atomic_write import write_text
from runyard.serving import validation
from runyard.serving.supervisor_client import SupervisorClient, new_key, process_tag
from runyard.spec.json import from_json, to_json
from runyard.spec.service import DesiredState, ServiceConfiguration, ServiceFolder, VersionSpec, WorkerOrder
from runyard.store.services import ServiceRecord, VersionRecord

_POLL_S = 0.02
_SUPERVISOR_START_S = 60.0  # generous, for a very busy machine
_LOG_TAIL_LINES = 30
_DELETED = "the service was deleted during its deployment"
ProgressCallback = Callable[[str], None]


class CannotListen(WebserviceException):
    """The port is in use: another process may have chosen the same free port."""


def prepare(
    components: Components,
    models: Models,
    version: VersionRecord,
    supervisor: SupervisorClient,
    report: ProgressCallback,
    canceled: threading.Event,
) -> str:
    """Prepare everything that the workers need; idempotent. Returns the key of the environment."""
    folder, spec = supervisor.folder, from_json(VersionSpec, version.spec)
    records = [models.get(name, number) for name, number in version.models]
    environment = validation.environment_of(components, models, records, spec)
    report(f"environment: {environment.name}")
    prepared = components.environments.prepare(
        environment,
        has_gpu=bool(components.targets.get("local").compute.capacity().gpus),
        report=report,
        canceled=canceled,
        run_folder=folder.version(version.version),
        node_package=components.node_package,
        run_id=f"{version.name} (service)",
    )
    work = folder.work(version.version)
    # workers of a supervisor that outlived the yard may already be running in this folder
    if str(version.version) not in supervisor.status().get("versions", {}):
        if work.exists():  # left by an interrupted deployment
            shutil.rmtree(work)
        work.parent.mkdir(parents=True, exist_ok=True)
        if spec.snapshot_id:
            report("code: materialized")
            components.snapshots.materialize(spec.snapshot_id, work)
        work.mkdir(exist_ok=True)
    model_folder = work
    if version.models:
        report(f"models: {', '.join(record.id for record in records)}")
        model_folder = create_model_folder(models, [(name, int(number)) for name, number in version.models], work)
    served = "" if spec.entry_script else f"{model_folder}/{validation.onnx_file(models, records[0])}"
    order = _order(components, supervisor, spec, prepared, work, model_folder, served)
    write_text(folder.order(version.version), json.dumps(to_json(order)))
    return prepared.key


def _order(
    components: Components,
    supervisor: SupervisorClient,
    spec: VersionSpec,
    prepared: Prepared,
    work: Path,
    model_folder: Path,
    served: str,
) -> WorkerOrder:
    inherited = clean_environment(os.environ)
    own = {
        "PYTHONPATH": ":".join(
            part for part in (str(components.node_package), prepared.variables.get("PYTHONPATH", "")) if part
        ),
        "PYTHONUNBUFFERED": "1",
        "AZUREML_MODEL_DIR": str(model_folder),
        "AZUREML_ENTRY_SCRIPT": spec.entry_script,
        PROCESS_TAG: process_tag(supervisor.folder),
    }
    argv, complete = prepared.command(("-m", "runyard.scoring.worker"), own, work, inherited=inherited)
    # those of the machine are not written, because they may contain secrets: the supervisor passes on its own
    variables = {
        name: value
        for name, value in complete.items()
        if name in ("PATH", *own, *prepared.variables) or inherited.get(name) != value
    }
    details = {"description": spec.description} if spec.description else {}
    return WorkerOrder(argv, variables, spec.entry_script, served, details)


def desired_state(supervisor: SupervisorClient, record: ServiceRecord, traffic: dict[str, int]) -> DesiredState:
    """The desired state for a service record; keeps existing keys and creates missing ones."""
    configuration, before = from_json(ServiceConfiguration, record.configuration), supervisor.desired_state()
    return DesiredState(
        generation=0,
        name=record.name,
        host=configuration.host,
        port=configuration.port,
        workers=configuration.workers,
        auth_enabled=configuration.auth_enabled,
        keys=before.keys if before is not None and before.keys else (new_key(), new_key()),
        traffic=traffic,
        limits=configuration.limits,
        batching=configuration.batching,
    )


def bring_up(
    supervisor: SupervisorClient,
    state: DesiredState,
    version: int,
    previous_traffic: dict[str, int],
    report: ProgressCallback,
    canceled: threading.Event,
) -> None:
    """Block until the version serves. On failure, restore the previous traffic.

    Raises:
        WebserviceException: The version cannot serve; the message has the reason.
    """
    if canceled.is_set():
        raise WebserviceException(_DELETED)
    generation = supervisor.apply(state)
    report(f"workers: starting {state.workers} of version {version}")
    try:
        _wait(supervisor, generation, version, [int(number) for number in state.traffic], canceled)
    except WebserviceException:
        if previous_traffic:
            # only the traffic: a key that was replaced in the meantime must not become valid again
            supervisor.change(lambda current: replace(current, traffic=previous_traffic))
        else:
            supervisor.stop()
        raise


def interrupted_traffic(supervisor: SupervisorClient, version: VersionRecord) -> dict[str, int]:
    """The traffic of a deployment that was interrupted: as stored in the desired state, or 100 % for the version."""
    state = supervisor.desired_state()
    if state is not None and str(version.version) in state.traffic:
        return state.traffic
    return {str(version.version): 100}


def serves(status: dict[str, Any], traffic: dict[str, int]) -> bool:
    versions = status.get("versions", {})
    return all(
        any(worker["state"] == "serving" for worker in versions.get(version, {}).get("workers", ()))
        for version in traffic
    )


def log_writer(folder: ServiceFolder, version: int) -> ProgressCallback:
    """A callback that appends to the deployment log."""
    started_at = clock.monotonic()

    def write(text: str) -> None:
        # a full disk must not leave a deployment without an end
        with suppress(OSError), open(folder.deploy_log, "a", encoding="utf-8", errors="replace") as out:
            out.write(f"[version {version}, {clock.monotonic() - started_at:7.2f} s] {text}\n")

    return write


def wait_until_applied(supervisor: SupervisorClient, generation: int, timeout_s: float) -> None:
    """Return when every worker has applied the settings, or after the timeout."""
    deadline = clock.monotonic() + timeout_s
    while clock.monotonic() < deadline:
        status = supervisor.status()
        if status.get("generation", 0) >= generation and all(map(_is_current, status["versions"].values())):
            return
        time.sleep(_POLL_S)


def _wait(
    supervisor: SupervisorClient, generation: int, version: int, all_versions: list[int], canceled: threading.Event
) -> None:
    deadline = clock.monotonic() + _SUPERVISOR_START_S
    while True:
        status = supervisor.status()
        if status.get("generation", 0) >= generation:
            version_status = status["versions"].get(str(version), {})
            if status.get("error"):
                raise CannotListen(str(status["error"]))
            if version_status.get("state") == "failed":
                raise WebserviceException(str(version_status["error"]), hint=_log_tail(supervisor))
            if all(_is_current(status["versions"].get(str(number), {})) for number in all_versions):
                return
        elif clock.monotonic() > deadline and not supervisor.is_running():
            raise WebserviceException(
                "the service's supervisor does not start", hint=f"see {supervisor.folder.supervisor_log}"
            )
        if canceled.is_set():
            raise WebserviceException(_DELETED)
        time.sleep(_POLL_S)


def _is_current(version_status: dict[str, Any]) -> bool:
    workers = [worker for worker in version_status.get("workers", ()) if worker["state"] != "draining"]
    # a supervisor started by an older version does not report is_current; an upgrade must not block its service
    return (
        version_status.get("state") == "ready"
        and bool(workers)
        and all(worker.get("is_current", True) for worker in workers)
    )


def _log_tail(supervisor: SupervisorClient) -> str:
    try:
        lines = supervisor.folder.service_log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "service.get_logs() may have details"
    return "last lines of its log:\n" + "\n".join(lines[-_LOG_TAIL_LINES:])
