"""The records of runs: what they are, how they stand, what people wrote on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.errors import RunNotFound, UserErrorException
from runyard.lifecycle.state import TERMINAL, Attempt, End, EndReason, Life, RunState
from runyard.lifecycle.warning import RunWarning, from_stored, to_stored
from runyard.spec.json import to_json
from runyard.spec.parameters import parameters_of
from runyard.store import schema
from runyard.store.database import Database

Labels = dict[str, "str | None"]
SWEEP = "hyperdrive"  # the type of a run that leads others
_runs = schema.runs
_COLUMN_NAMES = tuple(_runs.c.keys())

# Built once: to put a statement together takes longer than SQLite takes to carry it out. JSON comes as the text that
# it is, for `parsed`.
_ALL = select(*(type_coerce(column, Text) if isinstance(column.type, JSON) else column for column in _runs.c))
_LOAD = _ALL.where(_runs.c.run_id == bindparam("wanted"))
_NEXT_NUMBER = select(
    select(func.max(_runs.c.number)).scalar_subquery().label("last"),
    exists(select(_runs.c.number).where(_runs.c.run_id == bindparam("wanted"))).label("is_there"),
)
_INSERT = upsert(_runs).on_conflict_do_nothing()
_INSERT_EXPERIMENT = upsert(schema.experiments).on_conflict_do_nothing()
_CHANGED = insert(schema.changes).prefix_with("OR REPLACE")
_SET_PARAM = insert(schema.params).prefix_with("OR REPLACE")
# the version is counted up where it stands: somebody may have set a tag since the record was read
_SAVE = update(_runs).where(_runs.c.run_id == bindparam("changed")).values(version=_runs.c.version + 1)
_SET_LABEL = {
    table: (new := upsert(table)).on_conflict_do_update(
        index_elements=["run_id", "key"], set_={"value": new.excluded.value}
    )
    for table in (schema.tags, schema.properties)
}
_LABELS = union_all(
    *(
        select(literal(place), table.c.run_id, table.c.key, table.c.value).where(
            table.c.run_id.in_(bindparam("wanted", expanding=True))
        )
        for place, table in enumerate((schema.tags, schema.properties))
    )
)


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


class RunStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def insert(
        self, record: RunRecord, tags: Mapping[str, str | None], properties: Mapping[str, str | None]
    ) -> RunRecord | None:
        """The record with its number. None: a run of this id is there already, and was left as it is."""
        with self._database.write() as connection:
            inserted = connection.execute(_INSERT, _columns(record))
            if not inserted.rowcount:
                return None
            number = inserted.lastrowid
            experiment = {"name": record.experiment, "created_at": record.created_at}
            connection.execute(_INSERT_EXPERIMENT, experiment)
            note_change(connection, record.run_id)
            _set_params(connection, record.run_id, parameters_of((record.spec or {}).get("arguments") or ()))
            _set_labels(connection, schema.tags, record.run_id, tags)
            _set_labels(connection, schema.properties, record.run_id, properties)
        return replace(record, number=number)

    def load(self, run_id: str) -> RunRecord:
        with self._database.read() as connection:
            row = connection.execute(_LOAD, {"wanted": run_id}).first()
            if row is None:
                raise _not_found(connection, run_id)
        return _record(row)

    def save(self, record: RunRecord) -> RunRecord:
        """Writes the record and counts its version up, in one transaction."""
        record = replace(record, version=record.version + 1)
        with self._database.write() as connection:
            connection.execute(_SAVE, {"changed": record.run_id, **_changing(record)})
            note_change(connection, record.run_id)
        return record

    def find(
        self,
        *,
        experiment: str | None = None,
        parent_id: str | None = None,
        run_ids: Sequence[str] | None = None,
        type: str | None = None,
        tags: Labels | None = None,
        properties: Labels | None = None,
        states: Iterable[RunState] | None = None,
        include_children: bool = False,
        fragment: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        """Newest first. A label that is asked for with the value None must only be there; a ``fragment`` is the
        beginning or the end of an id, or the beginning of a part of it."""
        query = _ALL.order_by(_runs.c.number.desc()).limit(limit)
        if experiment is not None:
            query = query.where(_runs.c.experiment == experiment)
        if parent_id is not None:
            query = query.where(_runs.c.parent_id == parent_id)
        elif run_ids is not None:
            query = query.where(_runs.c.run_id.in_(run_ids))
        elif not include_children:
            query = query.where(_runs.c.parent_id.is_(None))
        if fragment is not None:
            run_id = _runs.c.run_id
            begins = run_id.startswith(fragment, autoescape=True) | run_id.contains(f"_{fragment}", autoescape=True)
            query = query.where(begins | run_id.endswith(fragment, autoescape=True))
        if type is not None:
            query = query.where(_runs.c.type == type)
        if states is not None:
            query = query.where(_runs.c.state.in_([s.value for s in states]))
        if before is not None:
            query = query.where(_runs.c.number < before)
        for table, labels in ((schema.tags, tags), (schema.properties, properties)):
            for key, value in (labels or {}).items():
                wanted = and_(table.c.run_id == _runs.c.run_id, table.c.key == key)
                query = query.where(exists().where(wanted if value is None else and_(wanted, table.c.value == value)))
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def matching(
        self,
        experiments: Sequence[str],
        conditions: Sequence[ColumnElement[bool]],
        order: Sequence[ColumnElement[Any]],
        offset: int,
        limit: int,
    ) -> list[RunRecord]:
        """Of some experiments, by conditions as :mod:`runyard.store.run_search` makes them."""
        # the numbers first: to sort whole descriptions takes longer than to find them
        query = select(_runs.c.number).where(_runs.c.experiment.in_(experiments), *conditions).order_by(*order)
        with self._database.read() as connection:
            numbers = list(connection.execute(query.offset(offset).limit(limit)).scalars())
            found: dict[int, RunRecord] = {}
            for begin in range(0, len(numbers), 500):  # below SQLite's limit of variables
                rows = connection.execute(_ALL.where(_runs.c.number.in_(numbers[begin : begin + 500])))
                found.update((record.number, record) for record in map(_record, rows))
        return [found[number] for number in numbers if number in found]

    def unfinished(self) -> list[RunRecord]:
        query = _ALL.where(_runs.c.state.not_in([s.value for s in TERMINAL])).order_by(_runs.c.number)
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def descendants(self, run_id: str) -> list[str]:
        """The ids of all runs below this one, breadth first."""
        found: list[str] = []
        level = [run_id]
        with self._database.read() as connection:
            while level:
                query = select(_runs.c.run_id).where(_runs.c.parent_id.in_(level)).order_by(_runs.c.number)
                level = [row.run_id for row in connection.execute(query)]
                found += level
        return found

    def has(self, run_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(_LOAD, {"wanted": run_id}).first() is not None

    def next_number(self, run_id: str) -> int | None:
        """The number that a run of this id would get; None: it is there already, and has one."""
        with self._database.read() as connection:
            row = connection.execute(_NEXT_NUMBER, {"wanted": run_id}).one()
        return None if row.is_there else (row.last or 0) + 1

    def begun_below(self, parent_id: str) -> dict[str, tuple[str, float]]:
        """Of each child by its id: the state, and when it started, or was submitted."""
        columns = _runs.c.run_id, _runs.c.state, _runs.c.started_at, _runs.c.created_at
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(_runs.c.parent_id == parent_id))
            return {run_id: (state, started or created) for run_id, state, started, created in rows}

    def ended_below(self, parent_id: str) -> dict[str, float | None]:
        """When each child ended, by its id."""
        with self._database.read() as connection:
            rows = connection.execute(select(_runs.c.run_id, _runs.c.ended_at).where(_runs.c.parent_id == parent_id))
            return {row.run_id: row.ended_at for row in rows}

    def errors_below(self, parent_id: str) -> dict[str, str]:
        """Why each child failed that did, by its id."""
        query = select(_runs.c.run_id, _runs.c.end).where(
            _runs.c.parent_id == parent_id, _runs.c.state == RunState.FAILED.value
        )
        with self._database.read() as connection:
            return {row.run_id: (row.end or {}).get("message", "") for row in connection.execute(query)}

    def experiments(self) -> list[tuple[str, float]]:
        with self._database.read() as connection:
            query = select(schema.experiments).order_by(schema.experiments.c.created_at)
            return [(row.name, row.created_at) for row in connection.execute(query)]

    def begun(self, run_ids: Sequence[str]) -> dict[str, tuple[str, float]]:
        """Of those that are there: the state, and when it started, or was submitted."""
        columns = _runs.c.run_id, _runs.c.state, _runs.c.started_at, _runs.c.created_at
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(_runs.c.run_id.in_(run_ids)))
            return {run_id: (state, started or created) for run_id, state, started, created in rows}

    def add_experiment(self, name: str) -> None:
        """An experiment without runs; one that is there stays as it is."""
        with self._database.write() as connection:
            connection.execute(_INSERT_EXPERIMENT, {"name": name, "created_at": clock.now()})

    def rename(self, run_id: str, name: str) -> None:
        with self._database.write() as connection:
            _touch(connection, run_id)
            connection.execute(update(_runs).where(_runs.c.run_id == run_id).values(name=name))

    def labels(self, run_ids: Sequence[str]) -> dict[str, tuple[Labels, Labels]]:
        """The tags and the properties of each run."""
        found: dict[str, tuple[Labels, Labels]] = {run_id: ({}, {}) for run_id in run_ids}
        with self._database.read() as connection:
            for place, run_id, key, value in connection.execute(_LABELS, {"wanted": list(run_ids)}):
                found[run_id][place][key] = value
        return found

    def set_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Beside those that its script's arguments are; the same name again replaces the value."""
        with self._database.write() as connection:
            _touch(connection, run_id)
            _set_params(connection, run_id, params)

    def params_of(self, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {run_id: {} for run_id in run_ids}
        table = schema.params
        with self._database.read() as connection:
            for begin in range(0, len(run_ids), 500):  # below SQLite's limit of variables
                query = select(table).where(table.c.run_id.in_(run_ids[begin : begin + 500]))
                for run_id, key, value in connection.execute(query):
                    found[run_id][key] = value
        return found

    def set_tags(self, run_id: str, tags: Mapping[str, str | None], remove: Sequence[str] = ()) -> None:
        with self._database.write() as connection:
            _touch(connection, run_id)
            _set_labels(connection, schema.tags, run_id, tags)
            for key in remove:
                connection.execute(delete(schema.tags).where(schema.tags.c.run_id == run_id, schema.tags.c.key == key))

    def add_properties(self, run_id: str, properties: Mapping[str, str | None]) -> None:
        """Properties are written once: another value for a key that is there is refused, and nothing is written."""
        table = schema.properties
        with self._database.write() as connection:
            _touch(connection, run_id)
            query = select(table).where(table.c.run_id == run_id, table.c.key.in_(list(properties)))
            for row in connection.execute(query):
                if row.value != properties[row.key]:
                    raise UserErrorException(
                        f"property {row.key!r} of run {run_id} is {row.value!r} already and cannot become "
                        f"{properties[row.key]!r}",
                        hint="properties are written once; use a tag for what changes",
                    )
            _set_labels(connection, table, run_id, properties)


def note_change(connection: Connection, run_id: str) -> None:
    """Whoever watches all runs hears of this one; in the transaction that changes it."""
    connection.execute(_CHANGED, {"run_id": run_id})


def _touch(connection: Connection, run_id: str) -> None:
    changed = connection.execute(
        update(_runs).where(_runs.c.run_id == run_id).values(version=_runs.c.version + 1)
    ).rowcount
    if not changed:
        raise _not_found(connection, run_id)
    note_change(connection, run_id)


def _set_labels(connection: Connection, table: Any, run_id: str, labels: Mapping[str, str | None]) -> None:
    if labels:
        rows = [{"run_id": run_id, "key": key, "value": value} for key, value in labels.items()]
        connection.execute(_SET_LABEL[table], rows)


def _set_params(connection: Connection, run_id: str, params: Mapping[str, str]) -> None:
    if params:
        connection.execute(
            _SET_PARAM, [{"run_id": run_id, "key": key, "value": value} for key, value in params.items()]
        )


def _not_found(connection: Connection, run_id: str) -> RunNotFound:
    similar = select(_runs.c.run_id).where(_runs.c.run_id.startswith(run_id[:12], autoescape=True))
    near = [row.run_id for row in connection.execute(similar.order_by(_runs.c.number.desc()).limit(3))]
    hint = f"did you mean {', '.join(near)}?" if near and run_id else "`runyard runs` lists them"
    return RunNotFound(f"no run {run_id!r} in this yard", hint=hint, run_id=run_id)


def _changing(record: RunRecord) -> dict[str, Any]:
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


def _columns(record: RunRecord) -> dict[str, Any]:
    return {
        **_changing(record),
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


def _record(row: Row[Any]) -> RunRecord:
    values = dict(zip(_COLUMN_NAMES, row))
    end, spec = parsed(values.pop("end")), parsed(values["spec"])
    earlier = parsed(values.pop("attempts")) or ()
    life = Life(
        RunState(values.pop("state")),
        _end(end) if end else None,
        bool(values.pop("managed")),
        is_sweep=values["type"] == SWEEP,
        max_attempts=(spec or {}).get("max_attempts", 1),
        retry_on=tuple((spec or {}).get("retry_on", ())),
        earlier_attempts=tuple(Attempt(_end(one["end"]), one["ended_at"]) for one in earlier),
    )
    values["spec"], values["timeline"] = spec, parsed(values["timeline"])
    values["warnings"] = tuple(from_stored(value) for value in parsed(values["warnings"]))
    return RunRecord(life=life, **values)


def _end(said: dict[str, Any]) -> End:
    return End(**{**said, "reason": EndReason(said["reason"])})


def parsed(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # half a character, as an odd argument may have: only Python itself reads that
        return json.loads(text)


def entered(record: RunRecord, life: Life) -> RunRecord:
    """The record after its life changed: the times follow from the state."""
    at = clock.now()
    if len(life.earlier_attempts) > len(record.life.earlier_attempts):
        life = replace(
            life, earlier_attempts=tuple(replace(one, ended_at=one.ended_at or at) for one in life.earlier_attempts)
        )
    if life.state == record.life.state:
        return replace(record, life=life)
    timeline = dict(record.timeline)
    timeline.setdefault(life.state.value, at)
    return replace(
        record,
        life=life,
        timeline=timeline,
        started_at=record.started_at or (at if life.state is RunState.RUNNING else None),
        ended_at=at if life.state.is_terminal else record.ended_at,
    )
