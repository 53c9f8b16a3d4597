"""Taking a run in: everything that can be refused is refused here, before anything is written or started."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from runyard import clock
from runyard.environments.prepared import Prepared
from runyard.errors import EnvironmentException, SnapshotException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import RETRYABLE_REASONS, Life
from runyard.lifecycle.warning import notes
from runyard.orchestrator import data, prepare
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.dataset_versions import RERUN_OF, with_digests
from runyard.orchestrator.run_report import SNAPSHOT
from runyard.orchestrator.work_orders import rehearse
from runyard.snapshots.freeze import freeze
from runyard.snapshots.pack_upload import pack_missing
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Mpi
from runyard.spec.names import EXPERIMENT_NAME, RUN_ID
from runyard.spec.run import RunSpec
from runyard.store.runs import SWEEP, Labels, RunRecord
from runyard.tracking.artifacts import checked_path
from runyard.wire.runs import BeginRun, SubmitFolder, SubmitRun


def submit(conductor: Conductor, request: SubmitRun, *, is_checked: bool = False) -> RunRecord:
    """``is_checked``: as a child of a sweep was, with all others. What has come in its way since, a Python or a folder
    that is gone for a moment, is then a failure of this run, and not of whoever has more to submit."""
    rooms = conductor.rooms
    check_names(request.run_id, request.experiment)
    request = with_digests(rooms, request)
    spec = from_json(RunSpec, request.spec)
    warnings = () if is_checked else check(rooms, spec)
    if not rooms.snapshots.has(request.snapshot_id):
        raise SnapshotException(f"snapshot {request.snapshot_id} is not here yet", hint="offer it first")
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(max_attempts=spec.max_attempts, retry_on=spec.retry_on),
        created_at=clock.now(),
        parent_id=request.parent_id,
        root_id=_root(conductor, request.parent_id) or request.run_id,
        type="azureml.scriptrun",
        spec=request.spec,
        target=spec.target,
        snapshot_id=request.snapshot_id,
        warnings=notes((*request.warnings, *warnings)),
        submitted_by=request.submitted_by,
        timeline=_frozen(request),
    )
    ready = _ready(rooms, record.run_id, spec, is_checked)
    rooms.folder(record.run_id).logs.mkdir(parents=True, exist_ok=True)
    properties: Labels = {"ContentSnapshotId": request.snapshot_id, **request.properties}
    rooms.datasets.saved.record_uses(record.run_id, spec.data)
    return conductor.admit(record, on.Submitted(), request.tags, properties, ready)


def _ready(rooms: Rooms, run_id: str, spec: RunSpec, is_checked: bool) -> Prepared | None:
    try:
        if spec.data:  # it comes first, and may take long
            prepare.refuse_impossible(rooms, spec)
            return None
        return prepare.at_once(rooms, run_id, spec)
    except EnvironmentException:
        if is_checked:
            return None  # it is told when the run is prepared
        raise


def check(rooms: Rooms, spec: RunSpec) -> Sequence[str]:
    """Whatever is wrong with a run and can be known before it exists, but for its environment; returns warnings."""
    _check_watched(spec)
    _check_attempts(spec)
    _check_container(spec)
    target = rooms.targets.get(spec.target)
    data.check(rooms, spec)
    _, warnings = target.queue.fit(spec.resources)
    return warnings


def submit_folder(conductor: Conductor, request: SubmitFolder) -> RunRecord:
    """The yard freezes the code itself: its imports are warm, while a command's would take longer than all the rest."""
    check_names(request.run_id, request.experiment)
    began = clock.now()
    store = conductor.rooms.snapshots
    pack = store.incoming / f"{secrets.token_hex(8)}.pack"
    index = HomeFolder(conductor.rooms.home).snapshots / "index"
    frozen = freeze(Path(request.source_directory), index_folder=index, pack_to=pack)
    try:
        if not store.has(frozen.id):
            wanted = sorted({entry.digest for entry in frozen.manifest.entries if entry.digest})
            missing = store.missing(wanted)
            store.add(frozen.manifest.to_bytes(), pack_missing(frozen, missing, store.incoming / f"{pack.stem}-2.pack"))
    finally:
        pack.unlink(missing_ok=True)
    spec = to_json(from_json(RunSpec, request.spec))  # whole: people read it in the run's details
    return submit(
        conductor,
        SubmitRun(
            run_id=request.run_id,
            experiment=request.experiment,
            spec=spec,
            snapshot_id=frozen.id,
            warnings=list(frozen.warnings),
            submitted_by=request.submitted_by,
            frozen_from=began,
        ),
    )


def rerun(conductor: Conductor, run_id: str) -> RunRecord:
    """The same code with the same arguments and tags, as a new run."""
    store = conductor.rooms.runs
    old = store.load(run_id)
    if old.type == SWEEP:
        raise UserErrorException(
            f"{run_id} is a sweep, and its children are what can be run again",
            hint=f"runyard show {run_id} lists them, and `runyard rerun {run_id}_0` runs the first; "
            "sweep.rerun_failed() in Python runs those that failed; a sweep's command makes a new one",
        )
    if not old.spec or not old.snapshot_id:
        raise UserErrorException(
            f"run {run_id} was not submitted: it was the process that opened it",
            hint="runs that came from runyard run, runyard submit or Experiment.submit can be run again",
        )
    tags, _ = store.labels([run_id])[run_id]
    return submit(
        conductor,
        SubmitRun(
            run_id=f"{old.experiment}_{int(clock.now())}_{secrets.token_hex(4)}",
            experiment=old.experiment,
            spec=old.spec,
            snapshot_id=old.snapshot_id,
            tags=tags,
            properties={RERUN_OF: run_id},
            submitted_by=old.submitted_by or "",
        ),
    )


def dry_run(conductor: Conductor, request: SubmitRun) -> str:
    """What a submission would start, as text; refused for the same reasons, and nothing is written."""
    check_names(request.run_id, request.experiment)
    spec = from_json(RunSpec, request.spec)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(),
        created_at=clock.now(),
        spec=request.spec,
        target=conductor.rooms.targets.get(spec.target).name,
    )
    data.check(conductor.rooms, spec)
    return rehearse(conductor.rooms, record)


def begin(conductor: Conductor, request: BeginRun) -> RunRecord:
    rooms = conductor.rooms
    check_names(request.run_id, request.experiment)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(managed=False),
        created_at=clock.now(),
        parent_id=request.parent_id,
        root_id=_root(conductor, request.parent_id) or request.run_id,
        name=_chained(conductor, request),
        target="local",
        snapshot_id=request.snapshot_id,
        submitted_by=request.submitted_by,
    )
    folder = rooms.folder(record.run_id)
    folder.journal.mkdir(parents=True, exist_ok=True)
    if request.hold:
        folder.client_lock.touch()
    properties: Labels = {"ContentSnapshotId": request.snapshot_id} if request.snapshot_id else {}
    record = conductor.admit(record, on.Opened(), request.tags, properties)
    if request.hold:
        conductor.live.add(record.run_id)
    return record


def snapshot_taken(conductor: Conductor, run_id: str, snapshot_id: str) -> RunRecord:
    """An interactive run may freeze its code after its start."""
    conductor.rooms.runs.add_properties(run_id, {"ContentSnapshotId": snapshot_id})
    return conductor.note_snapshot(run_id, snapshot_id)


def check_names(run_id: str, experiment: str) -> None:
    if not EXPERIMENT_NAME.fullmatch(experiment):
        raise UserErrorException(
            f"{experiment!r} cannot be the name of an experiment",
            hint="1 to 255 characters: a letter or digit first, then letters, digits, '-' and '_'",
        )
    if not RUN_ID.fullmatch(run_id):
        raise UserErrorException(f"{run_id!r} cannot be the id of a run")


def _frozen(request: SubmitRun) -> dict[str, float]:
    """A clock that is an hour away from the yard's says nothing about how long it took."""
    began = request.frozen_from
    return {SNAPSHOT: began} if began is not None and 0 <= clock.now() - began < 3600 else {}


def _check_container(spec: RunSpec) -> None:
    """Open MPI starts ranks by daemons of its own, which a container per rank would keep from finding each other."""
    if isinstance(spec.launch, Mpi) and spec.environment.container is not None:
        raise UserErrorException(
            "MPI runs cannot be started in container images",
            hint="leave the image out and name the packages; torch's and TensorFlow's own launchers work in images",
        )


def _check_watched(spec: RunSpec) -> None:
    """What is watched is shown to readers, and moved away at the end: it must be the run's own."""
    for name in spec.directories_to_watch:
        try:
            checked_path(name)
        except UserErrorException:
            raise UserErrorException(
                f"directories_to_watch: {name!r} is not a folder inside of the run", hint="name it relative: 'logs'"
            ) from None


def _check_attempts(spec: RunSpec) -> None:
    if spec.max_attempts < 1:
        raise UserErrorException(f"max_attempts must be at least 1, not {spec.max_attempts}")
    known = [reason.value for reason in RETRYABLE_REASONS]
    for reason in spec.retry_on:
        if reason not in known:
            raise UserErrorException(
                f"retry_on: a run that ended with {reason!r} is not tried again", hint=f"reasons: {', '.join(known)}"
            )


def _root(conductor: Conductor, parent_id: str | None) -> str | None:
    return conductor.rooms.runs.load(parent_id).root_id if parent_id else None


def _chained(conductor: Conductor, request: BeginRun) -> str | None:
    """Names of children chain with `>`."""
    if request.name and request.parent_id:
        parent = conductor.rooms.runs.load(request.parent_id).name
        return f"{parent}>{request.name}" if parent else request.name
    return request.name
