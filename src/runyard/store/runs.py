"""Records of runs: description and state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import JSON, ColumnElement, Row, Text, bindparam, exists, func, select, type_coerce, update
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.lifecycle.state import TERMINAL, Attempt, End, EndReason, Life, RunState
from runyard.lifecycle.warning import RunWarning, from_stored, to_stored
from runyard.spec.json import to_json
from runyard.spec.parameters import parse_parameters
from runyard.store import schema
from runyard.store.database import batches
from runyard.store.experiments import ensure_experiment
from runyard.store.run_labels import RunLabels, not_found, record_change, set_labels, set_params, touch
from runyard.store.run_search import filtered

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from runyard.store.run_search import RunFilters

SWEEP = "hyperdrive"  # the type of a sweep's parent run
_ENDING = {state.value for state in (*TERMINAL, RunState.FINALIZING, RunState.CANCEL_REQUESTED)}
_runs = schema.runs
_COLUMN_NAMES = tuple(_runs.c.keys())
_JSON_NAMES = tuple(column.name for column in _runs.c if isinstance(column.type, JSON))

# Built once: constructing a statement takes longer than executing it. JSON columns are read as text, for `parse_json`.
_ALL = select(*(type_coerce(column, Text) if isinstance(column.type, JSON) else column for column in _runs.c))
_LOAD = _ALL.where(_runs.c.run_id == bindparam("run_id"))
_NEXT_NUMBER = select(
    select(func.max(_runs.c.number)).scalar_subquery().label("last"),
    exists(select(_runs.c.number).where(_runs.c.run_id == bindparam("run_id"))).label("exists"),
)
_INSERT = upsert(_runs).on_conflict_do_nothing()
# the version is incremented in the database: a tag may have been set since the record was read
_SAVE = update(_runs).where(_runs.c.run_id == bindparam("id")).values(version=_runs.c.version + 1)


@dataclass(frozen=True)
class RunRecord:
    run_id: str
    experiment: str
    life: Life
    created_at: float
    number: int = 0
    parent_id: str | None = None
    root_id: str = ""
    type: str | None = None
    name: str | None = None
    spec: dict[str, Any] | None = None
    target: str | None = None
    snapshot_id: str | None = None
    environment_key: str | None = None
    timeline: dict[str, float] = field(default_factory=dict)
    warnings: tuple[RunWarning, ...] = ()
    submitted_by: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    version: int = 0


class RunStore(RunLabels):
    def insert(
        self, record: RunRecord, tags: Mapping[str, str | None], properties: Mapping[str, str | None]
    ) -> RunRecord | None:
        """Insert a run and return the record with its number; None if the id exists already."""
        with self._database.write() as connection:
            inserted = connection.execute(_INSERT, to_columns(record))
            if not inserted.rowcount:
                return None
            number = inserted.lastrowid
            ensure_experiment(connection, record.experiment, record.created_at)
            record_change(connection, record.run_id)
            set_params(connection, record.run_id, parse_parameters((record.spec or {}).get("arguments") or ()))
            set_labels(connection, schema.tags, record.run_id, tags)
            set_labels(connection, schema.properties, record.run_id, properties)
        return replace(record, number=number)

    def load(self, run_id: str) -> RunRecord:
        with self._database.read() as connection:
            row = connection.execute(_LOAD, {"run_id": run_id}).first()
            if row is None:
                raise not_found(connection, run_id)
        return _record(row)

    def save(self, record: RunRecord) -> RunRecord:
        """Write the record and increment its version, in one transaction."""
        record = replace(record, version=record.version + 1)
        with self._database.write() as connection:
            connection.execute(_SAVE, {"id": record.run_id, **_mutable_columns(record)})
            record_change(connection, record.run_id)
        return record

    def find(self, *, limit: int = 100, **filters: Unpack[RunFilters]) -> list[RunRecord]:
        """Find runs, newest first."""
        query = filtered(_ALL, **filters).order_by(_runs.c.number.desc()).limit(limit)
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def find_numbers(self, *, limit: int = 100, **filters: Unpack[RunFilters]) -> list[int]:
        """Find the numbers of runs, newest first, without loading their records."""
        query = filtered(select(_runs.c.number), **filters).order_by(_runs.c.number.desc()).limit(limit)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def search(
        self,
        experiments: Sequence[str],
        conditions: Sequence[ColumnElement[bool]],
        order: Sequence[ColumnElement[Any]],
        offset: int,
        limit: int,
    ) -> list[RunRecord]:
        """Find runs of some experiments by conditions and orders of :mod:`runyard.store.run_search`."""
        # numbers first: sorting complete records takes longer than loading them afterwards
        query = select(_runs.c.number).where(_runs.c.experiment.in_(experiments), *conditions).order_by(*order)
        with self._database.read() as connection:
            numbers = list(connection.execute(query.offset(offset).limit(limit)).scalars())
            records: dict[int, RunRecord] = {}
            for batch in batches(numbers):
                rows = connection.execute(_ALL.where(_runs.c.number.in_(batch)))
                records.update((record.number, record) for record in map(_record, rows))
        return [records[number] for number in numbers if number in records]

    def unfinished(self) -> list[RunRecord]:
        query = _ALL.where(_runs.c.state.not_in([s.value for s in TERMINAL])).order_by(_runs.c.number)
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def descendants(self, run_id: str) -> list[str]:
        """Ids of all descendants, breadth first."""
        run_ids: list[str] = []
        level = [run_id]
        with self._database.read() as connection:
            while level:
                query = select(_runs.c.run_id).where(_runs.c.parent_id.in_(level)).order_by(_runs.c.number)
                level = [row.run_id for row in connection.execute(query)]
                run_ids += level
        return run_ids

    def has(self, run_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(_LOAD, {"run_id": run_id}).first() is not None

    def next_number(self, run_id: str) -> int | None:
        """The number that a new run of this id would get; None if the run exists."""
        with self._database.read() as connection:
            row = connection.execute(_NEXT_NUMBER, {"run_id": run_id}).one()
        return None if row.exists else (row.last or 0) + 1

    def child_states(self, parent_id: str) -> dict[str, tuple[str, float]]:
        """Map the ids of the children to their state and start time (until then, submission time)."""
        return self._states(_runs.c.parent_id == parent_id)

    def child_end_times(self, parent_id: str) -> dict[str, float | None]:
        """Map the ids of the children to their end time."""
        with self._database.read() as connection:
            rows = connection.execute(select(_runs.c.run_id, _runs.c.ended_at).where(_runs.c.parent_id == parent_id))
            return {row.run_id: row.ended_at for row in rows}

    def child_errors(self, parent_id: str) -> dict[str, str]:
        """Map the ids of the failed children to their error message."""
        query = select(_runs.c.run_id, _runs.c.end).where(
            _runs.c.parent_id == parent_id, _runs.c.state == RunState.FAILED.value
        )
        with self._database.read() as connection:
            return {row.run_id: (row.end or {}).get("message", "") for row in connection.execute(query)}

    def states(self, run_ids: Sequence[str]) -> dict[str, tuple[str, float]]:
        """Map the ids of existing runs to their state and start time (until then, submission time)."""
        return self._states(_runs.c.run_id.in_(run_ids))

    def _states(self, condition: ColumnElement[bool]) -> dict[str, tuple[str, float]]:
        columns = _runs.c.run_id, _runs.c.state, _runs.c.started_at, _runs.c.created_at
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(condition))
            return {run_id: (state, started or created) for run_id, state, started, created in rows}

    def set_end_time(self, run_id: str, ended_at: float) -> bool:
        """Replace the time at which a run ended; False if it has not ended."""
        has_ended = _runs.c.state.in_([state.value for state in TERMINAL])
        with self._database.write() as connection:
            touch(connection, run_id)
            ended = update(_runs).where(_runs.c.run_id == run_id, has_ended).values(ended_at=ended_at)
            return bool(connection.execute(ended).rowcount)

    def rename(self, run_id: str, name: str) -> None:
        with self._database.write() as connection:
            touch(connection, run_id)
            connection.execute(update(_runs).where(_runs.c.run_id == run_id).values(name=name))


def _mutable_columns(record: RunRecord) -> dict[str, Any]:
    return {
        "state": record.life.state.value,
        "end": to_json(record.life.end) if record.life.end else None,
        "snapshot_id": record.snapshot_id,
        "environment_key": record.environment_key,
        "timeline": record.timeline,
        "warnings": [to_stored(warning) for warning in record.warnings],
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "attempts": to_json(record.life.earlier_attempts) if record.life.earlier_attempts else None,
    }


def to_columns(record: RunRecord) -> dict[str, Any]:
    """The columns of a record as JSON values, without its number."""
    return {
        **_mutable_columns(record),
        "run_id": record.run_id,
        "experiment": record.experiment,
        "parent_id": record.parent_id,
        "root_id": record.root_id or record.run_id,
        "type": record.type,
        "name": record.name,
        "managed": int(record.life.managed),
        "spec": record.spec,
        "target": record.target,
        "submitted_by": record.submitted_by,
        "created_at": record.created_at,
        "version": record.version,
    }


def from_columns(values: dict[str, Any]) -> RunRecord:
    """The inverse of :func:`to_columns`. Raises KeyError, TypeError or ValueError for other values."""
    end, spec, earlier = values.pop("end"), values["spec"], values.pop("attempts") or ()
    life = Life(
        RunState(values.pop("state")),
        _end(end) if end else None,
        bool(values.pop("managed")),
        is_sweep=values["type"] == SWEEP,
        max_attempts=(spec or {}).get("max_attempts", 1),
        retry_on=tuple((spec or {}).get("retry_on", ())),
        earlier_attempts=tuple(Attempt(_end(attempt["end"]), attempt["ended_at"]) for attempt in earlier),
    )
    values["warnings"] = tuple(from_stored(value) for value in values["warnings"])
    return RunRecord(life=life, **values)


def _record(row: Row[Any]) -> RunRecord:
    values = dict(zip(_COLUMN_NAMES, row))
    for name in _JSON_NAMES:
        values[name] = parse_json(values[name])
    return from_columns(values)


def _end(values: dict[str, Any]) -> End:
    return End(**{**values, "reason": EndReason(values["reason"])})


def parse_json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # a lone surrogate, as in an argument with invalid Unicode: orjson rejects it
        return json.loads(text)


def with_life(record: RunRecord, life: Life) -> RunRecord:
    """Return the record with a new life and the times that follow from its state."""
    now = clock.now()
    if len(life.earlier_attempts) > len(record.life.earlier_attempts):
        life = replace(
            life, earlier_attempts=tuple(replace(a, ended_at=a.ended_at or now) for a in life.earlier_attempts)
        )
    if life.state == record.life.state:
        return replace(record, life=life)
    timeline = dict(record.timeline)
    if record.life.state.is_terminal:  # it was resumed: its first end is no longer an end
        timeline = {state: at for state, at in timeline.items() if state not in _ENDING}
    timeline.setdefault(life.state.value, now)
    return replace(
        record,
        life=life,
        timeline=timeline,
        started_at=now if record.started_at is None and life.state is RunState.RUNNING else record.started_at,
        ended_at=now if life.state.is_terminal else None,
    )
