"""Submission: take a snapshot of the code, upload what the yard lacks, and post the request.

All runs and sweeps of the SDK go through `_post_with_code`. Known code takes one request.
"""

from __future__ import annotations

import atexit
import base64
import functools
import getpass
import logging
import os
import secrets
import shutil
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.errors import SnapshotException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core.labels import as_labels
from runyard.sdk.training.build_spec import Submission
from runyard.sdk.training.data_inputs import data_uses
from runyard.sdk.training.run_configuration import TRANSIENT_CLUSTER
from runyard.snapshots.freeze import Snapshot, freeze
from runyard.snapshots.pack_upload import pack_missing
from runyard.spec.json import to_json
from runyard.spec.names import new_run_id
from runyard.wire.runs import BeginRun, SubmitRun
from runyard.wire.sweeps import SubmitSweep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run
    from runyard.spec.run import RunSpec
    from runyard.spec.sweep import SweepSpec

log = logging.getLogger("runyard")
_ABANDONED_AFTER_S = 86400.0


def submit_run(
    experiment: Experiment, submission: Submission, tags: dict[str, Any] | None, parent_id: str | None = None
) -> Run:
    from runyard.sdk.run.script_run import ScriptRun

    started_at = time.time()
    with _snapshot(submission.source_directory) as snapshot:
        freeze_s = time.time() - started_at
        experiment.workspace.connection.connect()  # may start the yard, which is not part of the snapshot's time
        request = SubmitRun(
            run_id=_new_id(experiment),
            experiment=experiment.name,
            spec=to_json(resolve_spec(experiment, submission)),
            snapshot_id=snapshot.id,
            tags=as_labels(tags, "tags"),
            warnings=list(snapshot.warnings),
            submitted_by=user_name(),
            parent_id=parent_id,
            frozen_from=time.time() - freeze_s,
        )
        view = _post_with_code(experiment.workspace.connection, "/api/runs", request, snapshot)
    return ScriptRun(experiment, request.run_id, _view=view)


def submit_sweep(
    experiment: Experiment,
    source_directory: Path,
    spec: SweepSpec,
    tags: dict[str, Any] | None,
    warnings: list[str],
    run_id: str | None,
) -> dict[str, Any]:
    """Submit a sweep. One snapshot serves all children."""
    with _snapshot(source_directory) as snapshot:
        request = SubmitSweep(
            run_id=run_id or f"HD_{uuid.uuid4()}",
            experiment=experiment.name,
            spec=to_json(spec),
            snapshot_id=snapshot.id,
            tags=as_labels(tags, "tags"),
            warnings=[*warnings, *snapshot.warnings],
            submitted_by=user_name(),
        )
        return _post_with_code(experiment.workspace.connection, "/api/sweeps", request, snapshot)


def resolve_spec(experiment: Experiment, submission: Submission) -> RunSpec:
    """Add what depends on the workspace: the target, the data, and notes on arguments without effect."""
    spec = replace(_with_target(experiment.workspace, submission), data=data_uses(submission, experiment.workspace))
    notes = (*no_effect.notes_of(experiment.workspace, experiment), *no_effect.process_notes())
    return replace(spec, no_effect=tuple(dict.fromkeys((*spec.no_effect, *notes)))) if notes else spec


def _with_target(workspace: Workspace, submission: Submission) -> RunSpec:
    """Replace a transient cluster by one that all runs of this size share: idle nodes cost nothing."""
    spec = submission.spec
    if spec.target != TRANSIENT_CLUSTER:
        return spec
    from runyard.sdk.compute.amlcompute import AmlCompute
    from runyard.sdk.compute.target import ComputeTarget

    max_nodes = max(8, 1 << (spec.resources.nodes - 1).bit_length())
    size = "".join(letter if letter.isalnum() else "-" for letter in submission.vm_size.lower())[:20].strip("-")
    configuration = AmlCompute.provisioning_configuration(vm_size=submission.vm_size, max_nodes=max_nodes)
    return replace(spec, target=ComputeTarget.create(workspace, f"once-{size}-{max_nodes}", configuration).name)


class DryRun(str):
    """The host, command and variables of every process that a submission would start, as text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def render_dry_run(experiment: Experiment, submission: Submission) -> DryRun:
    """Check everything, without a snapshot, a build or a start."""
    request = SubmitRun(_new_id(experiment), experiment.name, to_json(resolve_spec(experiment, submission)))
    return DryRun(experiment.workspace.connection.post("/api/runs/dry-run", to_json(request))["text"])


def begin_run(
    experiment: Experiment,
    *,
    snapshot_directory: str | None = None,
    outputs: str | None = None,
    name: str | None = None,
    parent_id: str | None = None,
    tags: dict[str, Any] | None = None,
) -> Run:
    """Start a run in this process: interactive, or a child."""
    from runyard.sdk.run.interactive import InteractiveSession
    from runyard.sdk.run.run import Run

    connection = experiment.workspace.connection
    snapshot_id = None
    if snapshot_directory is not None:
        if not Path(snapshot_directory).is_dir():
            raise UserErrorException(f"snapshot_directory {snapshot_directory!r} is not a folder")
        snapshot_id = take_snapshot(connection, Path(snapshot_directory))
    request = BeginRun(
        run_id=str(uuid.uuid4()),
        experiment=experiment.name,
        parent_id=parent_id,
        name=name,
        snapshot_id=snapshot_id,
        tags=as_labels(tags, "tags"),
        submitted_by=user_name(),
    )
    run = Run(experiment, request.run_id, _view=connection.post("/api/runs/begin", to_json(request)))
    run._session = InteractiveSession(run, Path(outputs) if outputs else None)
    return run


def take_snapshot(connection: Connection, directory: Path) -> str:
    """Take a snapshot of a folder, upload it, and return its id."""
    with _snapshot(directory) as snapshot:
        if snapshot.pack is not None or not connection.get(f"/api/snapshots/{snapshot.id}")["there"]:
            _upload(connection, snapshot)
    return snapshot.id


def _post_with_code(
    connection: Connection, route: str, request: SubmitRun | SubmitSweep, snapshot: Snapshot
) -> dict[str, Any]:
    body = to_json(request)
    if snapshot.pack is not None:
        _upload(connection, snapshot)  # files were read, so the code is probably new to the yard
    try:
        view: dict[str, Any] = connection.post(route, body)
    except SnapshotException:  # the yard has lost it, or is another one
        _upload(connection, snapshot)
        view = connection.post(route, body)
    for warning in view["warnings"]:
        log.warning("%s", warning)
    return view


def _upload(connection: Connection, snapshot: Snapshot) -> None:
    """Upload the content that the yard lacks as one pack; the yard verifies every hash before it stores it."""
    manifest = base64.b64encode(snapshot.manifest.to_bytes()).decode()
    missing = connection.post("/api/snapshots", {"manifest": manifest})["missing"]
    if missing:
        pack = pack_missing(snapshot, missing, _pack_path())
        assert pack is not None
        try:
            with open(pack, "rb") as stream:
                connection.upload(f"/api/snapshots/{snapshot.id}/content", stream)
        finally:
            pack.unlink(missing_ok=True)


@contextmanager
def _snapshot(directory: Path) -> Iterator[Snapshot]:
    """Take a snapshot; its pack is removed afterwards."""
    snapshot = freeze(directory, index_folder=_cache_folder() / "index", pack_to=_pack_path(), report=log.info)
    try:
        yield snapshot
    finally:
        if snapshot.pack is not None:
            snapshot.pack.unlink(missing_ok=True)


def _pack_path() -> Path:
    return _cache_folder() / f"{os.getpid()}-{secrets.token_hex(8)}.pack"


@functools.lru_cache(maxsize=1)
def _cache_folder() -> Path:
    """The user's cache folder: the SDK writes nothing to the yard's folders. Without a home, a temporary folder."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runyard" / "snapshots"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pack in folder.glob("*.pack*"):  # of clients that were killed
            if pack.stat().st_mtime < time.time() - _ABANDONED_AFTER_S:
                pack.unlink()
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    folder = Path(tempfile.mkdtemp(prefix="runyard-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _new_id(experiment: Experiment) -> str:
    return new_run_id(experiment.name)


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"
