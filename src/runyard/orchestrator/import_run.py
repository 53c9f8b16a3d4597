"""Runs that took place elsewhere: they enter as they ended, and nothing is started for them."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.spec.names import RUN_ID, experiment_name
from runyard.store import schema
from runyard.store.documents import EXPERIMENT, Documents
from runyard.store.runs import RunRecord
from runyard.wire.exchange import ImportResult, ImportRun

SOURCE = "runyard.imported_from"
_ENDS = {
    "Completed": EndReason.SUCCEEDED,
    "Failed": EndReason.SCRIPT_FAILED,
    "Canceled": EndReason.CANCELED,
    "NotEnded": EndReason.PROCESS_LOST,
}


def take_in(conductor: Conductor, request: ImportRun) -> ImportResult:
    """Sent again, only what differs is written: what people did to the run since then stays."""
    _check(request)
    store = conductor.rooms.runs
    record = _record(conductor, request)
    try:
        known = store.load(request.run_id)
    except RunNotFound:
        known = None
    if known is None:
        _keep_title(conductor, record.experiment, request.experiment)
        store.insert(record, request.tags, {SOURCE: request.source})
        created = True
    else:
        created = False
        if store.labels([known.run_id])[known.run_id][1].get(SOURCE) != request.source:
            raise UserErrorException(
                f"a run {known.run_id} is here already, and was not imported from {request.source}",
                hint="import into another yard: RUNYARD_HOME=folder runyard import …",
            )
    changed = _catch_up(conductor, known, record, request)
    if created or changed:
        conductor.bell.ring(request.run_id)
    return ImportResult(
        request.run_id,
        created,
        changed,
        _points(conductor, request.run_id),
        {kept.path: kept.digest for kept in conductor.rooms.artifacts.files(request.run_id)},
    )


def _check(request: ImportRun) -> None:
    if not RUN_ID.fullmatch(request.run_id):
        raise UserErrorException(f"{request.run_id!r} cannot be the id of a run")
    if request.status not in _ENDS:
        raise UserErrorException(
            f"an imported run cannot be {request.status!r}", hint=f"it is one of {', '.join(_ENDS)}"
        )


def _record(conductor: Conductor, request: ImportRun) -> RunRecord:
    reason = _ENDS[request.status]
    message = request.message
    if reason is EndReason.PROCESS_LOST:
        message = f"it had not ended when it was imported from {request.source}"
    elif reason is EndReason.SCRIPT_FAILED and not message:
        message = f"it failed, says {request.source}"
    end = End(reason, message)
    ended_at = request.ended_at if request.ended_at is not None else request.created_at
    return RunRecord(
        run_id=request.run_id,
        experiment=experiment_name(request.experiment),
        life=Life(end.state, end, managed=False),
        created_at=request.created_at,
        parent_id=request.parent_id,
        root_id=_root(conductor, request.parent_id) or request.run_id,
        name=request.name,
        target="local",
        timeline={RunState.RUNNING.value: request.created_at, end.state.value: ended_at},
        submitted_by=request.submitted_by,
        started_at=request.created_at,
        ended_at=ended_at,
    )


def _root(conductor: Conductor, parent_id: str | None) -> str | None:
    """Children may come before their parents."""
    try:
        return conductor.rooms.runs.load(parent_id).root_id if parent_id else None
    except RunNotFound:
        return parent_id


def _keep_title(conductor: Conductor, experiment: str, title: str) -> None:
    if experiment != title:
        Documents(conductor.rooms.database).change(
            EXPERIMENT, experiment, experiment, lambda before: {"title": title, **before}
        )


def _catch_up(conductor: Conductor, known: RunRecord | None, record: RunRecord, request: ImportRun) -> bool:
    store = conductor.rooms.runs
    run_id = request.run_id
    params = store.params_of([run_id])[run_id]
    new_params = {key: value for key, value in request.params.items() if key not in params}
    if new_params:
        store.set_params(run_id, new_params)
    if known is None:
        return False
    tags = store.labels([run_id])[run_id][0]
    new_tags = {key: value for key, value in request.tags.items() if key not in tags}
    if new_tags:
        store.set_tags(run_id, new_tags)
    was_open = known.life.end is not None and known.life.end.reason is EndReason.PROCESS_LOST
    went_on = was_open and (known.life.end != record.life.end or known.ended_at != record.ended_at)
    if went_on:
        store.save(replace(store.load(run_id), life=record.life, ended_at=record.ended_at, timeline=record.timeline))
    return bool(new_params or new_tags or went_on)


def _points(conductor: Conductor, run_id: str) -> dict[str, int]:
    table = schema.series.c
    with conductor.rooms.database.read() as connection:
        rows = connection.execute(select(table.name, table.count).where(table.run_id == run_id))
        return dict(rows.tuples().all())
