"""Registered models: versions by name, aliases, and the history of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from runyard import clock
from runyard.errors import ModelInUse
from runyard.store import schema
from runyard.store.database import MAX_INTEGER, Database
from runyard.store.model_names import ModelNotFound, delete_name, next_version, title_of, touch_name
from runyard.store.webhooks import CREATED, DELETED, MODEL_VERSION, SET, VERSION_ALIAS, VERSION_TAG, queue_event

_models, _aliases, _history = schema.models, schema.model_aliases, schema.model_history


@dataclass(frozen=True)
class ModelRecord:
    name: str
    version: int
    registration_id: str
    stage: str
    digest: str
    size: int
    created_at: float
    changed_at: float
    description: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    created_by: str | None = None
    experiment: str | None = None
    run_id: str | None = None
    snapshot_id: str | None = None
    environment_key: str | None = None
    environment_lock: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    properties: dict[str, str | None] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    data: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.name}:{self.version}"


@dataclass(frozen=True)
class Alias:
    alias: str
    version: int
    set_by: str | None
    set_at: float


@dataclass(frozen=True)
class HistoryEntry:
    """One change of a model."""

    version: int
    what: str  # "registered", "stage", "alias", "alias removed", "deleted"
    before: str | None
    after: str | None
    note: str | None
    by: str | None
    at: float


class ModelStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        name: str,
        registration_id: str,
        build: Callable[[int], ModelRecord],
        add_files: Callable[[Connection, ModelRecord], None],
        *,
        name_must_exist: bool = False,
    ) -> ModelRecord:
        """Add the next version of a name and its files in one transaction.

        A known registration id returns its existing version.
        """
        with self._database.write() as connection:
            existing = connection.execute(_ALL.where(_models.c.registration_id == registration_id)).first()
            if existing is not None:
                return _record(existing)
            record = build(next_version(connection, name, must_exist=name_must_exist))
            connection.execute(insert(_models).values(**vars(record)))
            add_files(connection, record)
            _add_history(connection, record.name, record.version, "registered", by=record.created_by)
            _queue_creation(connection, record)
        return record

    def by_registration_id(self, registration_id: str) -> ModelRecord | None:
        with self._database.read() as connection:
            row = connection.execute(_ALL.where(_models.c.registration_id == registration_id)).first()
        return None if row is None else _record(row)

    def get(self, name: str, version: int | str | None = None) -> ModelRecord:
        """Return a version by number or alias; the latest by default. ModelNotFound lists the existing ones."""
        with self._database.read() as connection:
            row = connection.execute(_select_version(connection, name, version)).first()
            if row is None:
                raise _not_found(connection, name, version)
        return _record(row)

    def find(self, *, name: str | None = None, run_id: str | None = None) -> list[ModelRecord]:
        """List versions by name, newest first, without the environment locks, which are long."""
        query = _WITHOUT_LOCK.order_by(_models.c.name, _models.c.version.desc())
        if name is not None:
            query = query.where(_models.c.name == name)
        if run_id is not None:
            query = query.where(_models.c.run_id == run_id)
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def aliases(self, name: str | None = None) -> dict[str, list[Alias]]:
        """Map model names to their aliases."""
        query = select(_aliases).order_by(_aliases.c.name, _aliases.c.alias)
        if name is not None:
            query = query.where(_aliases.c.name == name)
        aliases: dict[str, list[Alias]] = {}
        with self._database.read() as connection:
            for row in connection.execute(query):
                aliases.setdefault(row.name, []).append(Alias(row.alias, row.version, row.set_by, row.set_at))
        return aliases

    def history(self, name: str, version: int | None = None) -> list[HistoryEntry]:
        """List the changes, oldest first."""
        query = select(_history).where(_history.c.name == name).order_by(_history.c.number)
        if version is not None:
            query = query.where(_history.c.version == version)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [HistoryEntry(row.version, row.what, row.before, row.after, row.note, row.by, row.at) for row in rows]

    def change(self, name: str, version: int, apply: Callable[[ModelRecord], Mapping[str, Any]]) -> ModelRecord:
        """Set the columns that ``apply`` returns for the old record, in one transaction."""
        with self._database.write() as connection:
            record = self._load(connection, name, version)
            _write(connection, record, apply(record))
            changed = self._load(connection, name, version)
            _queue_tags(connection, record, changed)
        return changed

    def set_stage(
        self, name: str, version: int, stage: str, by: str | None, note: str | None, archive: str | None = None
    ) -> ModelRecord:
        """Set the stage; ``archive`` is the stage of the other versions at this stage from then on."""
        with self._database.write() as connection:
            before = self._load(connection, name, version)
            if before.stage != stage or note:
                _write(connection, before, {"stage": stage})
                _add_history(connection, name, version, "stage", before.stage, stage, note, by)
            if archive is not None:
                other_versions = _ALL.where(
                    _models.c.name == name, _models.c.version != version, _models.c.stage == stage
                )
                for other in map(_record, connection.execute(other_versions).all()):
                    _write(connection, other, {"stage": archive})
                    reason = f"version {version} is at this stage now"
                    _add_history(connection, name, other.version, "stage", stage, archive, reason, by)
            touch_name(connection, name)
            return self._load(connection, name, version)

    def set_alias(self, name: str, alias: str, version: int, by: str | None) -> None:
        with self._database.write() as connection:
            self._load(connection, name, version)
            before = _alias(connection, name, alias)
            if before == version:
                return
            connection.execute(delete(_aliases).where(_aliases.c.name == name, _aliases.c.alias == alias))
            values = {"name": name, "alias": alias, "version": version, "set_by": by, "set_at": clock.now()}
            connection.execute(insert(_aliases).values(**values))
            if before is not None:
                _add_history(
                    connection, name, before, "alias removed", alias, by=by, note=f"moved to version {version}"
                )
            _add_history(connection, name, version, "alias", None if before is None else str(before), alias, by=by)
            data = {"name": title_of(connection, name), "alias": alias, "version": str(version)}
            queue_event(connection, VERSION_ALIAS, CREATED, data)

    def remove_alias(self, name: str, alias: str, by: str | None) -> None:
        """Remove an alias; no error if it does not exist, so that the request can be repeated."""
        with self._database.write() as connection:
            version = _alias(connection, name, alias)
            if version is not None:
                _remove_alias(connection, name, alias, version, by)

    def remove(
        self,
        name: str,
        version: int,
        by: str | None,
        remove_files: Callable[[Connection], None],
        *,
        with_aliases: bool = False,
        keep_name: bool = False,
    ) -> None:
        """Delete a version and its files in one transaction; its history is kept.

        Args:
            with_aliases: Remove its aliases, too. Otherwise a version with an alias cannot be deleted.
            keep_name: The name stays registered without its last version.
        """
        with self._database.write() as connection:
            record = self._load(connection, name, version)
            query = select(_aliases.c.alias).where(_aliases.c.name == name, _aliases.c.version == version)
            aliases = connection.execute(query.order_by(_aliases.c.alias)).scalars().all()
            for alias in aliases if with_aliases else ():
                _remove_alias(connection, name, alias, version, by)
            if aliases and not with_aliases:
                raise ModelInUse(
                    f"version {version} of the model {name!r} has the alias {' and '.join(map(repr, aliases))}",
                    hint=f"move the alias to another version, or remove it: runyard models alias {name} "
                    f"{aliases[0]} --remove",
                    model=name,
                )
            connection.execute(delete(_models).where(_models.c.name == name, _models.c.version == version))
            remove_files(connection)
            _add_history(connection, name, version, "deleted", record.stage, by=by)
            has_versions = connection.execute(_ALL.where(_models.c.name == name).limit(1)).first() is not None
            if has_versions or keep_name:
                touch_name(connection, name)
            else:
                delete_name(connection, name)

    def _load(self, connection: Connection, name: str, version: int) -> ModelRecord:
        row = connection.execute(_select_version(connection, name, version)).first()
        if row is None:
            raise _not_found(connection, name, version)
        return _record(row)


_ALL: Select[Any] = select(_models)
_WITHOUT_LOCK: Select[Any] = select(*(column for column in _models.c if column.name != "environment_lock"))


def _select_version(connection: Connection, name: str, version: int | str | None) -> Select[Any]:
    query = _ALL.where(_models.c.name == name).order_by(_models.c.version.desc()).limit(1)
    if version is None or version == "latest":
        return query
    number: int | None
    if isinstance(version, str):
        number = int(version[:19]) if version.isdecimal() else _alias(connection, name, version)
    else:
        number = version
    return query.where(_models.c.version == (number if number is not None and abs(number) < MAX_INTEGER else -1))


def _alias(connection: Connection, name: str, alias: str) -> int | None:
    query = select(_aliases.c.version).where(_aliases.c.name == name, _aliases.c.alias == alias)
    version: int | None = connection.execute(query).scalar_one_or_none()
    return version


def _remove_alias(connection: Connection, name: str, alias: str, version: int, by: str | None) -> None:
    connection.execute(delete(_aliases).where(_aliases.c.name == name, _aliases.c.alias == alias))
    _add_history(connection, name, version, "alias removed", alias, by=by)
    queue_event(connection, VERSION_ALIAS, DELETED, {"name": title_of(connection, name), "alias": alias})


def _queue_creation(connection: Connection, record: ModelRecord) -> None:
    title = title_of(connection, record.name)
    data = {
        "name": title,
        "version": str(record.version),
        "source": record.details.get("source") or f"models:/{title}/{record.version}",
        "run_id": record.run_id,
        "tags": {key: value or "" for key, value in record.tags.items()},
        "description": record.description,
    }
    queue_event(connection, MODEL_VERSION, CREATED, data)


def _queue_tags(connection: Connection, before: ModelRecord, after: ModelRecord) -> None:
    if before.tags == after.tags:
        return
    version = {"name": title_of(connection, after.name), "version": str(after.version)}
    for key, value in after.tags.items():
        if key not in before.tags or before.tags[key] != value:
            queue_event(connection, VERSION_TAG, SET, {**version, "key": key, "value": value or ""})
    for key in before.tags.keys() - after.tags.keys():
        queue_event(connection, VERSION_TAG, DELETED, {**version, "key": key})


def _write(connection: Connection, record: ModelRecord, changes: Mapping[str, Any]) -> None:
    is_version = (_models.c.name == record.name) & (_models.c.version == record.version)
    connection.execute(update(_models).where(is_version).values(changed_at=clock.now(), **changes))


def _add_history(
    connection: Connection,
    name: str,
    version: int,
    what: str,
    before: str | None = None,
    after: str | None = None,
    note: str | None = None,
    by: str | None = None,
) -> None:
    values = {"before": before, "after": after, "note": note, "by": by, "at": clock.now()}
    connection.execute(insert(_history).values(name=name, version=version, what=what, **values))


def _record(row: Any) -> ModelRecord:
    return ModelRecord(**row._mapping)


def _not_found(connection: Connection, name: str, version: int | str | None) -> ModelNotFound:
    versions = connection.execute(
        select(_models.c.version).where(_models.c.name == name).order_by(_models.c.version)
    ).scalars()
    numbers = [str(number) for number in versions]
    if numbers:
        query = select(_aliases.c.alias).where(_aliases.c.name == name).order_by(_aliases.c.alias)
        existing = [*numbers[-10:], *connection.execute(query).scalars()]
        return ModelNotFound(
            f"the model {name!r} has no version {str(version)!r}", hint=f"it has: {', '.join(existing)}", model=name
        )
    names = connection.execute(select(_models.c.name).distinct().order_by(_models.c.name)).scalars().all()
    hint = "add one with Model.register(ws, model_path, model_name) or runyard models register NAME PATH"
    if names:
        hint = f"registered: {', '.join(names[:10])}" + (", …" if len(names) > 10 else "")
    return ModelNotFound(f"no model named {name!r} is registered", hint=hint, model=name)
