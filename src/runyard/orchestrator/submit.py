"""Submission of runs: everything that can be refused is refused here, before anything is written or started."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from posixpath import normpath

from runyard import clock
from runyard.compute.registry import LOCAL
from runyard.compute.scheduling.resource_ledger import count
from runyard.environments.prepared import Prepared
from runyard.errors import ComputeTargetException, EnvironmentException, SnapshotException, UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import RETRYABLE_REASONS, Life
from runyard.lifecycle.warning import notes
from runyard.orchestrator import data
from runyard.orchestrator.components import Components
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.dataset_versions import RERUN_OF, pin_datasets
from runyard.orchestrator.new_folder import new_folder
from runyard.orchestrator.prepare import check_environment
from runyard.orchestrator.run_report import SNAPSHOT
from runyard.orchestrator.run_secrets import protect_spec, store_values
from runyard.orchestrator.work_orders import render_dry_run
from runyard.snapshots.freeze import freeze
from runyard.snapshots.pack_upload import pack_missing
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.launch import Mpi
from runyard.spec.names import EXPERIMENT_NAME, RUN_ID, new_run_id
from runyard.spec.run import RunSpec
from runyard.store.run_labels import Labels
from runyard.store.runs import SWEEP, RunRecord
from runyard.tracking.artifacts import validate_path
from runyard.wire.runs import BeginRun, SubmitRun


def submit(conductor: Conductor, request: SubmitRun, *, is_checked: bool = False) -> RunRecord:
    """Submit a run. Its code has been uploaded, or is in a folder of which the yard takes a snapshot.

    Args:
        conductor: The conductor.
        request: The run.
        is_checked: The run was checked before, as the children of a sweep are. A problem that has occurred since then,
            such as a missing Python, fails this run, but is not raised to the sweep.
    """
    components = conductor.components
    check_names(request.run_id, request.experiment)
    if request.source_directory is not None:
        request = _take_snapshot(components, request, Path(request.source_directory))
    request = pin_datasets(components, request)
    from_json(RunSpec, request.spec)  # refuses an invalid specification
    origins = (request.properties.get(RERUN_OF), request.parent_id)
    masked_spec, values = protect_spec(components, request.spec, origins)
    request = replace(request, spec=masked_spec)
    spec = from_json(RunSpec, request.spec)
    warnings = () if is_checked else check(components, spec)
    if not request.snapshot_id:
        raise UserErrorException(f"run {request.run_id} has no code", hint="send snapshot_id or source_directory")
    if not components.snapshots.has(request.snapshot_id):
        raise SnapshotException(f"snapshot {request.snapshot_id} has not been uploaded", hint="upload it first")
    check_script(components, spec, request.snapshot_id)
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
        timeline=_snapshot_timeline(request),
    )
    properties: Labels = {"ContentSnapshotId": request.snapshot_id, **request.properties}
    with new_folder(components, record.run_id) as run_folder:
        if components.runs.has(record.run_id):
            return _stored(components, record)
        ready = _existing_environment(conductor, record.run_id, spec, is_checked)
        run_folder.journal.mkdir(exist_ok=True)  # now: a script could not create it on a full disk
        store_values(components, record.run_id, values)
        components.datasets.saved.record_uses(record.run_id, spec.data)
        return conductor.admit(record, on.Submitted(), request.tags, properties, ready)


def _existing_environment(conductor: Conductor, run_id: str, spec: RunSpec, is_checked: bool) -> Prepared | None:
    try:
        if spec.data:  # the data must be fetched first, which may take long
            check_environment(conductor.components, spec)
            return None
        return conductor.environments.prepare_existing(run_id, spec)
    except EnvironmentException:
        if is_checked:
            return None  # reported when the run is prepared
        raise


def check(components: Components, spec: RunSpec) -> Sequence[str]:
    """Refuse a run that cannot work, except for its environment; return warnings."""
    _check_watched(spec)
    _check_attempts(spec)
    _check_container(spec)
    components.vault.named.check(spec.secrets)
    target = components.targets.get(spec.target)
    data.check(components, spec)
    resources, warnings = target.queue.fit(spec.resources)
    if spec.resources.gpus_required and not resources.gpus_per_process:
        raise ComputeTargetException(
            f"the run requests {count(spec.resources.gpus_per_node, 'GPU')}; compute target {spec.target!r} has none",
            hint="choose another target, or replace the number by --gpu or use_gpu=True: where there is no GPU, "
            "such a run uses the CPU",
        )
    return warnings


def _take_snapshot(components: Components, request: SubmitRun, folder: Path) -> SubmitRun:
    """Take the snapshot in the yard, whose modules are loaded: a command would take longer to import them."""
    if not folder.is_absolute() or "\0" in str(folder):
        raise UserErrorException(
            f"source_directory must be an absolute path, got {str(folder)!r}", hint="a folder that the yard can read"
        )
    parsed_spec = from_json(RunSpec, request.spec)
    _script_name(parsed_spec)  # before a folder is read that may be large
    spec = to_json(parsed_spec)  # with defaults: the run's details show it
    started_at = clock.now()
    store = components.snapshots
    pack = store.incoming / f"{secrets.token_hex(8)}.pack"
    second_pack = pack.with_name(f"{pack.stem}-2.pack")
    snapshot = freeze(folder, index_folder=HomeFolder(components.home).snapshots / "index", pack_to=pack)
    try:
        if not store.has(snapshot.id):
            missing = store.missing(sorted(snapshot.manifest.digests))
            store.add(snapshot.manifest.to_bytes(), pack_missing(snapshot, missing, second_pack))
    finally:
        pack.unlink(missing_ok=True)
        second_pack.unlink(missing_ok=True)
    return replace(
        request,
        spec=spec,
        snapshot_id=snapshot.id,
        warnings=[*request.warnings, *snapshot.warnings],
        frozen_from=started_at,
    )


def rerun(conductor: Conductor, run_id: str) -> RunRecord:
    """Submit the same code with the same arguments and tags as a new run."""
    store = conductor.components.runs
    old = store.load(run_id)
    if old.type == SWEEP:
        raise UserErrorException(
            f"{run_id} is a sweep; only its children can be run again",
            hint=f"runyard show {run_id} lists them, and `runyard rerun {run_id}_0` runs the first; "
            "sweep.rerun_failed() in Python runs those that failed; submit a new sweep to repeat all of them",
        )
    if not old.spec or not old.snapshot_id:
        raise UserErrorException(
            f"run {run_id} was not submitted: it was opened by its own process",
            hint="runs from runyard run, runyard submit or Experiment.submit can be run again",
        )
    tags, _ = store.labels([run_id])[run_id]
    return submit(
        conductor,
        SubmitRun(
            run_id=new_run_id(old.experiment),
            experiment=old.experiment,
            spec=old.spec,
            snapshot_id=old.snapshot_id,
            tags=tags,
            properties={RERUN_OF: run_id},
            submitted_by=old.submitted_by or "",
        ),
    )


def dry_run(conductor: Conductor, request: SubmitRun) -> str:
    """Return what a submission would start, as text. Refuses the same runs; writes nothing."""
    check_names(request.run_id, request.experiment)
    spec = from_json(RunSpec, request.spec)
    conductor.components.vault.named.check(spec.secrets)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(),
        created_at=clock.now(),
        spec=protect_spec(conductor.components, request.spec)[0],
        target=conductor.components.targets.get(spec.target).name,
    )
    data.check(conductor.components, spec)
    return render_dry_run(conductor.components, record)


def open_run(conductor: Conductor, request: BeginRun) -> RunRecord:
    """Open an interactive run, whose process is not managed by the yard."""
    components = conductor.components
    check_names(request.run_id, request.experiment)
    record = RunRecord(
        run_id=request.run_id,
        experiment=request.experiment,
        life=Life(managed=False),
        created_at=clock.now(),
        parent_id=request.parent_id,
        root_id=_root(conductor, request.parent_id) or request.run_id,
        name=_full_name(conductor, request),
        target=LOCAL,
        snapshot_id=request.snapshot_id,
        submitted_by=request.submitted_by,
    )
    properties: Labels = {"ContentSnapshotId": request.snapshot_id} if request.snapshot_id else {}
    with new_folder(components, record.run_id) as folder:
        if components.runs.has(record.run_id):
            return _stored(components, record)
        folder.journal.mkdir(exist_ok=True)
        if request.hold:
            folder.client_lock.touch()
        record = conductor.admit(record, on.Opened(), request.tags, properties)
    if request.hold:
        conductor.live.add(record.run_id)
    return record


def _stored(components: Components, record: RunRecord) -> RunRecord:
    """The run that exists under this id: a client that received no response submits the same run again.

    Raises:
        UserErrorException: It is another run.
    """
    stored = components.runs.load(record.run_id)
    if _identity(stored) != _identity(record):
        kind = "a sweep" if stored.type == SWEEP else "another run"
        raise UserErrorException(
            f"run id {record.run_id!r} is in use: it is {kind} of the experiment {stored.experiment!r}",
            hint="choose another run id, or omit it",
        )
    return stored


def _identity(record: RunRecord) -> tuple[object, ...]:
    """The part of a run that is equal when its submission is repeated. Code and data may have changed in between."""
    spec = record.spec or {}
    return record.type, record.experiment, record.parent_id, spec.get("script"), list(spec.get("arguments") or ())


def attach_snapshot(conductor: Conductor, run_id: str, snapshot_id: str) -> RunRecord:
    """For an interactive run, which takes its snapshot after it was opened."""
    conductor.components.runs.add_properties(run_id, {"ContentSnapshotId": snapshot_id})
    return conductor.set_snapshot(run_id, snapshot_id)


def check_names(run_id: str, experiment: str) -> None:
    if not EXPERIMENT_NAME.fullmatch(experiment):
        raise UserErrorException(
            f"invalid experiment name {experiment!r}",
            hint="1 to 255 characters: a letter or digit first, then letters, digits, '-' and '_'",
        )
    if not RUN_ID.fullmatch(run_id):
        raise UserErrorException(
            f"invalid run id {run_id!r}",
            hint="1 to 255 characters: a letter or digit first, then letters, digits, '-', '_' and '.'",
        )


def _snapshot_timeline(request: SubmitRun) -> dict[str, float]:
    """The start of the snapshot, unless the client's clock differs too much from the yard's."""
    started_at = request.frozen_from
    return {SNAPSHOT: started_at} if started_at is not None and 0 <= clock.now() - started_at < 3600 else {}


def _check_container(spec: RunSpec) -> None:
    """Open MPI starts ranks through its own daemons, which cannot reach each other with one container per rank."""
    if isinstance(spec.launch, Mpi) and spec.environment.container is not None:
        raise UserErrorException(
            "MPI runs cannot be started in container images",
            hint="specify packages instead of an image; the launchers of torch and TensorFlow work in images",
        )


def check_script(components: Components, spec: RunSpec, snapshot_id: str) -> None:
    if not components.snapshots.manifest(snapshot_id).has_file(_script_name(spec)):
        raise UserErrorException(
            f"no script {spec.script!r} in the folder",
            hint="it must exist and not be excluded by .runyardignore, .amlignore or .gitignore",
        )


def _script_name(spec: RunSpec) -> str:
    """The name in the snapshot. A script outside of it would be code that is not recorded: any file of the machine."""
    try:
        return normpath(validate_path(spec.script))
    except UserErrorException:
        raise UserErrorException(
            f"the script {spec.script!r} is outside of the folder", hint="use a path relative to the folder: 'train.py'"
        ) from None


def _check_watched(spec: RunSpec) -> None:
    """Watched folders are readable through the API and moved at the end: they must be inside of the run."""
    for name in spec.directories_to_watch:
        try:
            validate_path(name)
        except UserErrorException:
            raise UserErrorException(
                f"directories_to_watch: {name!r} is not a folder of the run", hint="use a relative path: 'logs'"
            ) from None


def _check_attempts(spec: RunSpec) -> None:
    if spec.max_attempts < 1:
        raise UserErrorException(f"max_attempts must be at least 1, got {spec.max_attempts}")
    retryable = [reason.value for reason in RETRYABLE_REASONS]
    for reason in spec.retry_on:
        if reason not in retryable:
            raise UserErrorException(
                f"retry_on: a run that ended with {reason!r} cannot be retried", hint=f"reasons: {', '.join(retryable)}"
            )


def _root(conductor: Conductor, parent_id: str | None) -> str | None:
    return conductor.components.runs.load(parent_id).root_id if parent_id else None


def _full_name(conductor: Conductor, request: BeginRun) -> str | None:
    """The name of a child contains the names of its parents: `parent>child`."""
    if request.name and request.parent_id:
        parent = conductor.components.runs.load(request.parent_id).name
        return f"{parent}>{request.name}" if parent else request.name
    return request.name
