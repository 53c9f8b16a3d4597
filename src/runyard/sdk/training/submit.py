"""From a description to a run: freeze the code, hand it over, ask the yard. One request for known code."""

from __future__ import annotations

import base64
import getpass
import logging
import os
import secrets
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.client.home import prepare_home
from runyard.errors import SnapshotException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core.labels import as_labels
from runyard.sdk.training.build_spec import Submission
from runyard.sdk.training.data_inputs import data_uses
from runyard.sdk.training.run_configuration import TRANSIENT_CLUSTER
from runyard.snapshots.freeze import Snapshot, freeze
from runyard.snapshots.pack_upload import pack_missing
from runyard.spec.json import to_json
from runyard.wire.runs import BeginRun, SubmitRun
from runyard.wire.sweeps import SubmitSweep

if TYPE_CHECKING:
    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run
    from runyard.spec.run import RunSpec
    from runyard.spec.sweep import SweepSpec

log = logging.getLogger("runyard")


def submit_run(
    experiment: Experiment, submission: Submission, tags: dict[str, Any] | None, parent_id: str | None = None
) -> Run:
    from runyard.sdk.run.script_run import ScriptRun

    connection = experiment.workspace.connection
    began = time.time()
    frozen = _freeze(connection, submission.source_directory)
    request = SubmitRun(
        run_id=_new_id(experiment),
        experiment=experiment.name,
        spec=to_json(final_spec(experiment, submission)),
        snapshot_id=frozen.id,
        tags=as_labels(tags, "tags"),
        warnings=list(frozen.warnings),
        submitted_by=user_name(),
        parent_id=parent_id,
        frozen_from=began,
    )
    view = _post_with_code(connection, "/api/runs", to_json(request), frozen)
    return ScriptRun(experiment, request.run_id, _view=view)


def submit_sweep(
    experiment: Experiment,
    source_directory: Path,
    spec: SweepSpec,
    tags: dict[str, Any] | None,
    warnings: list[str],
    run_id: str | None,
) -> dict[str, Any]:
    """The code is frozen once, for all children."""
    connection = experiment.workspace.connection
    frozen = _freeze(connection, source_directory)
    request = SubmitSweep(
        run_id=run_id or f"HD_{uuid.uuid4()}",
        experiment=experiment.name,
        spec=to_json(spec),
        snapshot_id=frozen.id,
        tags=as_labels(tags, "tags"),
        warnings=[*warnings, *frozen.warnings],
        submitted_by=user_name(),
    )
    return _post_with_code(connection, "/api/sweeps", to_json(request), frozen)


def final_spec(experiment: Experiment, submission: Submission) -> RunSpec:
    """With what is known only now: where it goes, and each argument around it that has no effect here."""
    spec = replace(_placed(experiment.workspace, submission), data=data_uses(submission, experiment.workspace))
    around = (*no_effect.notes_of(experiment.workspace, experiment), *no_effect.process_notes())
    return replace(spec, no_effect=tuple(dict.fromkeys((*spec.no_effect, *around)))) if around else spec


def _placed(workspace: Workspace, submission: Submission) -> RunSpec:
    """A cluster for one run is one of that size which such runs share: its nodes cost nothing while they are idle."""
    spec = submission.spec
    if spec.target != TRANSIENT_CLUSTER:
        return spec
    from runyard.sdk.compute.amlcompute import AmlCompute
    from runyard.sdk.compute.target import ComputeTarget

    most = max(8, 1 << (spec.resources.nodes - 1).bit_length())
    size = "".join(letter if letter.isalnum() else "-" for letter in submission.vm_size.lower())[:20].strip("-")
    wanted = AmlCompute.provisioning_configuration(vm_size=submission.vm_size, max_nodes=most)
    return replace(spec, target=ComputeTarget.create(workspace, f"once-{size}-{most}", wanted).name)


def _post_with_code(connection: Connection, route: str, body: dict[str, Any], frozen: Snapshot) -> dict[str, Any]:
    try:
        view: dict[str, Any] = connection.post(route, body)
    except SnapshotException:  # the yard does not have this code yet
        hand_over(connection, frozen)
        view = connection.post(route, body)
    finally:
        _drop_pack(frozen)
    for warning in view["warnings"]:
        log.warning("%s", warning)
    return view


class DryRun(str):
    """What a submission would start, as text: host, command and variables of every process."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def rehearse_run(experiment: Experiment, submission: Submission) -> DryRun:
    """Everything is checked, and nothing is frozen, built or started."""
    request = SubmitRun(
        _new_id(experiment), experiment.name, to_json(final_spec(experiment, submission)), snapshot_id=""
    )
    answer = experiment.workspace.connection.post("/api/runs/dry-run", to_json(request))
    return DryRun(answer["text"])


def begin_run(
    experiment: Experiment,
    *,
    snapshot_directory: str | None = None,
    outputs: str | None = None,
    name: str | None = None,
    parent_id: str | None = None,
    tags: dict[str, Any] | None = None,
) -> Run:
    """A run whose process is this one: interactive, or a child."""
    from runyard.sdk.run.interactive import InteractiveSession
    from runyard.sdk.run.run import Run

    connection = experiment.workspace.connection
    frozen = None
    if snapshot_directory is not None:
        if not Path(snapshot_directory).is_dir():
            raise UserErrorException(f"snapshot_directory {snapshot_directory!r} is not a folder")
        frozen = _frozen_and_there(connection, Path(snapshot_directory))
    request = BeginRun(
        run_id=str(uuid.uuid4()),
        experiment=experiment.name,
        parent_id=parent_id,
        name=name,
        snapshot_id=frozen.id if frozen else None,
        tags=as_labels(tags, "tags"),
        submitted_by=user_name(),
    )
    view = connection.post("/api/runs/begin", to_json(request))
    run = Run(experiment, request.run_id, _view=view)
    run._session = InteractiveSession(run, Path(outputs) if outputs else None)
    return run


def take_snapshot(connection: Connection, directory: Path) -> str:
    return _frozen_and_there(connection, directory).id


def hand_over(connection: Connection, frozen: Snapshot) -> None:
    """Content travels once, as one pack; the yard checks every hash before it takes the snapshot in."""
    offer = {"manifest": base64.b64encode(frozen.manifest.to_bytes()).decode(), "pack": None}
    answer = connection.post("/api/snapshots", offer)
    if answer["snapshot_id"] is None:
        pack = pack_missing(frozen, answer["missing"], _incoming(connection))
        assert pack is not None
        try:
            connection.post("/api/snapshots", {**offer, "pack": pack.name})
        finally:
            pack.unlink(missing_ok=True)  # the yard has moved it by now, unless something failed


def _frozen_and_there(connection: Connection, directory: Path) -> Snapshot:
    frozen = _freeze(connection, directory)
    try:
        if not connection.get(f"/api/snapshots/{frozen.id}")["there"]:
            hand_over(connection, frozen)
    finally:
        _drop_pack(frozen)
    return frozen


def _freeze(connection: Connection, directory: Path) -> Snapshot:
    pack = _incoming(connection)
    if not pack.parent.is_dir():
        prepare_home(connection.home)
        pack.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = connection.home / "snapshots" / "index"
    return freeze(directory, index_folder=index, pack_to=pack, report=log.info)


def _incoming(connection: Connection) -> Path:
    """A new name in the folder from which the yard takes packs in by a rename."""
    return connection.home / "snapshots" / "incoming" / f"{os.getpid()}-{secrets.token_hex(8)}.pack"


def _drop_pack(frozen: Snapshot) -> None:
    if frozen.pack is not None:
        frozen.pack.unlink(missing_ok=True)


def _new_id(experiment: Experiment) -> str:
    return f"{experiment.name}_{int(time.time())}_{secrets.token_hex(4)}"


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"
