"""One version of a service from its description to answers: environment, code, models, workers."""

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
from runyard.launch.variables import PROCESS_TAG, clean
from runyard.models.layout import lay_out
from runyard.models.registry import Models
from runyard.orchestrator.components import Rooms
from runyard.serving import validation
from runyard.serving.supervisor_client import Keeping, new_key, tag_of
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceConfiguration, ServiceFolder, VersionSpec, Wanted, WorkerOrder
from runyard.store.services import ServiceRecord, VersionRecord

_LOOK_S = 0.02
_KEEPER_S = 60.0  # to be there at all, on a machine that is very busy
_LAST_LINES = 30
_DELETED = "the service was deleted while it was deployed"
Say = Callable[[str], None]


class CannotListen(WebserviceException):
    """Whoever else looked for a free port at the same moment was faster."""


def prepare(
    rooms: Rooms, models: Models, version: VersionRecord, keeping: Keeping, say: Say, ends: threading.Event
) -> str:
    """Everything that its workers need; the key of the environment. Done twice, it is the same."""
    folder, spec = keeping.folder, from_json(VersionSpec, version.spec)
    chosen = [models.get(name, number) for name, number in version.models]
    environment = validation.environment_of(rooms, models, chosen, spec)
    say(f"environment: {environment.name}")
    prepared = rooms.environments.prepare(
        environment,
        has_gpu=bool(rooms.targets.get("local").compute.capacity().gpus),
        say=say,
        abandoned=ends,
        run_folder=folder.version(version.version),
        kit=rooms.kit,
        run_id=f"{version.name} (service)",
    )
    work = folder.work(version.version)
    # its keeper outlived the yard that laid it out: workers would go on in a folder that is gone
    if str(version.version) not in keeping.found().get("versions", {}):
        if work.exists():  # of a yard that was killed in the middle
            shutil.rmtree(work)
        work.parent.mkdir(parents=True, exist_ok=True)
        if spec.snapshot_id:
            say("code: laid out")
            rooms.snapshots.materialize(spec.snapshot_id, work)
        work.mkdir(exist_ok=True)
    model_folder = work
    if version.models:
        say(f"models: {', '.join(record.id for record in chosen)}")
        model_folder = lay_out(models, [(name, int(number)) for name, number in version.models], work)
    served = "" if spec.entry_script else f"{model_folder}/{validation.onnx_file(models, chosen[0])}"
    order = _order(rooms, keeping, spec, prepared, work, model_folder, served)
    _write(folder.order(version.version), to_json(order))
    return prepared.key


def _order(
    rooms: Rooms, keeping: Keeping, spec: VersionSpec, prepared: Prepared, work: Path, model_folder: Path, served: str
) -> WorkerOrder:
    own = {
        "PYTHONPATH": ":".join(part for part in (str(rooms.kit), prepared.variables.get("PYTHONPATH", "")) if part),
        "PYTHONUNBUFFERED": "1",
        "AZUREML_MODEL_DIR": str(model_folder),
        "AZUREML_ENTRY_SCRIPT": spec.entry_script,
        PROCESS_TAG: tag_of(keeping.folder),
    }
    argv, variables = prepared.command(("-m", "runyard.scoring.worker"), own, work, inherited=clean(os.environ))
    details = {"description": spec.description} if spec.description else {}
    return WorkerOrder(argv, variables, spec.entry_script, served, details)


def wanted(keeping: Keeping, record: ServiceRecord, traffic: dict[str, int]) -> Wanted:
    """What a keeper shall make so; the keys stay, or are made."""
    configuration, before = from_json(ServiceConfiguration, record.configuration), keeping.wanted()
    return Wanted(
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
    keeping: Keeping, asked: Wanted, version: int, served: dict[str, int], say: Say, ends: threading.Event
) -> None:
    """Blocks until the version serves; WebserviceException says why it does not, and what ``served`` before goes on."""
    if ends.is_set():
        raise WebserviceException(_DELETED)
    generation = keeping.want(asked)
    say(f"workers: {asked.workers} of version {version} start")
    try:
        _wait(keeping, generation, version, [int(number) for number in asked.traffic], ends)
    except WebserviceException:
        if served:
            # only that is put back: a key that was replaced meanwhile must not open the service again
            keeping.change(lambda now: replace(now, traffic=served))
        else:
            keeping.stop()
        raise


def begun(keeping: Keeping, version: VersionRecord) -> dict[str, int]:
    """The shares of a deployment that a yard did not finish: those that it had begun to want, or all of it."""
    wanted = keeping.wanted()
    if wanted is not None and str(version.version) in wanted.traffic:
        return wanted.traffic
    return {str(version.version): 100}


def serves(found: dict[str, Any], traffic: dict[str, int]) -> bool:
    versions = found.get("versions", {})
    return all(
        any(worker["state"] == "serving" for worker in versions.get(version, {}).get("workers", ()))
        for version in traffic
    )


def writer(folder: ServiceFolder, version: int) -> Say:
    """Into the log of its deployments."""
    began = clock.monotonic()

    def write(text: str) -> None:
        # a full disk takes no line, and is no reason to leave a deployment without an end
        with suppress(OSError), open(folder.deploy_log, "a", encoding="utf-8", errors="replace") as out:
            out.write(f"[version {version}, {clock.monotonic() - began:7.2f} s] {text}\n")

    return write


def settle(keeping: Keeping, generation: int, within_s: float) -> None:
    """Returns when every worker answers as it was told to, or after that time."""
    deadline = clock.monotonic() + within_s
    while clock.monotonic() < deadline:
        found = keeping.found()
        if found.get("generation", 0) >= generation and all(map(_is_current, found["versions"].values())):
            return
        time.sleep(_LOOK_S)


def _wait(keeping: Keeping, generation: int, version: int, every: list[int], ends: threading.Event) -> None:
    deadline = clock.monotonic() + _KEEPER_S
    while True:
        found = keeping.found()
        if found.get("generation", 0) >= generation:
            told = found["versions"].get(str(version), {})
            if found.get("error"):
                raise CannotListen(str(found["error"]))
            if told.get("state") == "failed":
                raise WebserviceException(str(told["error"]), hint=_last_lines(keeping))
            if all(_is_current(found["versions"].get(str(number), {})) for number in every):
                return
        elif clock.monotonic() > deadline and not keeping.is_kept():
            raise WebserviceException(
                "the keeper of the service does not start", hint=f"see {keeping.folder.keeper_log}"
            )
        if ends.is_set():
            raise WebserviceException(_DELETED)
        time.sleep(_LOOK_S)


def _is_current(told: dict[str, Any]) -> bool:
    here = [worker for worker in told.get("workers", ()) if worker["state"] != "draining"]
    # a keeper that an older yard started does not say it: such a service is not held up by an upgrade
    return told.get("state") == "ready" and bool(here) and all(worker.get("is_current", True) for worker in here)


def _last_lines(keeping: Keeping) -> str:
    try:
        lines = keeping.folder.service_log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "service.get_logs() may say more"
    return "the end of its log:\n" + "\n".join(lines[-_LAST_LINES:])


def _write(path: Path, value: object) -> None:
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.chmod(0o600)  # variables may hold what only the owner should read
    draft.replace(path)
