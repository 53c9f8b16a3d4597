"""Imports runs from other tracking systems."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.spec.names import RUN_ID, to_experiment_name
from runyard.store import schema
from runyard.store.experiments import ExperimentStore
from runyard.store.runs import RunRecord
from runyard.wire.exchange import IMPORTED_FROM, ImportResult, ImportRun

_ENDS = {
    "Completed": EndReason.SUCCEEDED,
    "Failed": EndReason.SCRIPT_FAILED,
    "Canceled": EndReason.CANCELED,
    "NotEnded": EndReason.PROCESS_LOST,
}
_RUNNING = "Running"  # of a run whose source is watched
_OPEN = Life(RunState.RUNNING, managed=False)


def import_finished_run(conductor: Conductor, request: ImportRun) -> ImportResult:
    """Import a run. Repeating it adds what is new, and keeps changes that users have made since."""
    _check(request)
    store = conductor.components.runs
    final = _record(conductor, request, _life(request))
    is_open = request.data_follows and final.life.end is not None
    record = _record(conductor, request, _OPEN) if is_open else final
    created = not store.has(request.run_id)
    if created:
        ExperimentStore(conductor.components.database).add(record.experiment, request.experiment)
        # None: a concurrent import of the same run was first
        created = store.insert(record, request.tags, {IMPORTED_FROM: request.source}) is not None
    existing = None if created else store.load(request.run_id)
    if (
        existing is not None
        and store.labels([existing.run_id])[existing.run_id][1].get(IMPORTED_FROM) != request.source
    ):
        raise UserErrorException(
            f"run {existing.run_id} exists and was not imported from {request.source}",
            hint="import into another yard: RUNYARD_HOME=folder runyard import …",
        )
    is_pending = is_open and (existing is None or _supersedes(final, existing))
    changed = _update(conductor, existing, None if is_open else record, request)
    if created or changed:
        conductor.notifier.notify(request.run_id)
    return ImportResult(
        request.run_id,
        created,
        changed,
        is_pending,
        _points(conductor, request.run_id),
        {artifact.path: artifact.digest for artifact in conductor.components.artifacts.files(request.run_id)},
    )


def _check(request: ImportRun) -> None:
    if not RUN_ID.fullmatch(request.run_id):
        raise UserErrorException(f"invalid run id {request.run_id!r}")
    if request.status not in (_RUNNING, *_ENDS):
        raise UserErrorException(
            f"invalid status {request.status!r} of an imported run", hint=f"one of {', '.join((_RUNNING, *_ENDS))}"
        )


def _record(conductor: Conductor, request: ImportRun, life: Life) -> RunRecord:
    ended_at = None
    timeline = {RunState.RUNNING.value: request.created_at}
    if life.end is not None:
        ended_at = request.ended_at if request.ended_at is not None else request.created_at
        timeline[life.state.value] = ended_at
    return RunRecord(
        run_id=request.run_id,
        experiment=to_experiment_name(request.experiment),
        life=life,
        created_at=request.created_at,
        parent_id=request.parent_id,
        root_id=_root(conductor, request.parent_id) or request.run_id,
        name=request.name,
        target="local",
        timeline=timeline,
        submitted_by=request.submitted_by,
        started_at=request.created_at,
        ended_at=ended_at,
    )


def _life(request: ImportRun) -> Life:
    if request.status == _RUNNING:
        return _OPEN
    reason = _ENDS[request.status]
    message = request.message
    if reason is EndReason.PROCESS_LOST:
        message = f"the run had not ended when it was imported from {request.source}"
    elif reason is EndReason.SCRIPT_FAILED and not message:
        message = f"the run failed, according to {request.source}"
    end = End(reason, message)
    return Life(end.state, end, managed=False)


def _root(conductor: Conductor, parent_id: str | None) -> str | None:
    """The root of a child, which may be imported before its parent."""
    try:
        return conductor.components.runs.load(parent_id).root_id if parent_id else None
    except RunNotFound:
        return parent_id


def _update(conductor: Conductor, existing: RunRecord | None, record: RunRecord | None, request: ImportRun) -> bool:
    """Add new parameters and tags, and the state of ``record``; return True if an existing run has changed."""
    store = conductor.components.runs
    run_id = request.run_id
    params = store.params([run_id])[run_id]
    new_params = {key: value for key, value in request.params.items() if key not in params}
    if new_params:
        store.set_params(run_id, new_params)
    if existing is None:
        return False
    tags = store.labels([run_id])[run_id][0]
    new_tags = {key: value for key, value in request.tags.items() if key not in tags}
    if new_tags:
        store.set_tags(run_id, new_tags)
    has_changed = False
    if record is not None and _supersedes(record, existing):
        has_changed = True
        store.save(replace(store.load(run_id), life=record.life, ended_at=record.ended_at, timeline=record.timeline))
    return bool(new_params or new_tags or has_changed)


def _supersedes(record: RunRecord, existing: RunRecord) -> bool:
    """True if the import has a newer state. A run may be resumed in its source after it has ended."""
    end = existing.life.end
    if end is not None and end.reason is EndReason.CANCELED and end != End(EndReason.CANCELED):
        return False  # a user has canceled it in the yard
    if existing.life.state is RunState.RUNNING or (end is not None and end.reason is EndReason.PROCESS_LOST):
        new_state = (record.life.state, record.life.end, record.ended_at)
        return new_state != (existing.life.state, end, existing.ended_at)
    if record.life.end is None:  # it is being watched
        return existing.life.state.is_terminal
    return (
        record.life.end.reason is not EndReason.PROCESS_LOST
        and existing.life.state.is_terminal
        and (record.ended_at or 0.0) > (existing.ended_at or 0.0)
    )


def _points(conductor: Conductor, run_id: str) -> dict[str, int]:
    table = schema.series.c
    with conductor.components.database.read() as connection:
        rows = connection.execute(select(table.name, table.count).where(table.run_id == run_id))
        return dict(rows.tuples().all())
