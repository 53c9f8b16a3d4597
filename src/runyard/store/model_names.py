"""Names of registered models, with the description and tags that all versions of a name share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from runyard import clock
from runyard.errors import UserErrorException, WebserviceException
from runyard.store import schema
from runyard.store.database import Database
from runyard.store.webhooks import CREATED, REGISTERED_MODEL, queue_event

_names, _models = schema.model_names, schema.models
_aliases, _history = schema.model_aliases, schema.model_history

MoveFiles = Callable[[Connection, int], None]  # called for each version of a name


class ModelNotFound(WebserviceException):
    """A WebserviceException, as in SDK v1, with HTTP status 404."""


class ModelNameTaken(UserErrorException):
    pass


@dataclass(frozen=True)
class ModelName:
    name: str
    title: str  # the name in MLflow
    created_at: float
    changed_at: float
    description: str | None
    tags: dict[str, str]


class ModelNames:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, title: str) -> ModelName:
        with self._database.read() as connection:
            return _by_title(connection, title)

    def by_name(self, name: str) -> ModelName:
        query = select(_names).where(_names.c.name == name, _names.c.deleted_at.is_(None))
        with self._database.read() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise not_found(name)
        return _model_name(row)

    def name_of(self, title: str) -> str:
        """The name for a title; the title itself if there is none."""
        query = select(_names.c.name).where(_names.c.title == title)
        with self._database.read() as connection:
            return str(connection.execute(query).scalar_one_or_none() or title)

    def all(self) -> list[ModelName]:
        query = select(_names).where(_names.c.deleted_at.is_(None)).order_by(_names.c.title)
        with self._database.read() as connection:
            return [_model_name(row) for row in connection.execute(query)]

    def add(self, name: str, title: str, description: str | None, tags: Mapping[str, str]) -> ModelName:
        """Add a name without versions.

        Raises:
            ModelNameTaken: It exists already.
        """
        with self._database.write() as connection:
            _check_free(connection, name, title)
            add_name(connection, name, title, description, tags)
            return _by_title(connection, title)

    def change(self, title: str, apply: Callable[[ModelName], Mapping[str, Any]]) -> ModelName:
        """Set the columns that ``apply`` returns for the old record, in one transaction."""
        with self._database.write() as connection:
            record = _by_title(connection, title)
            changes = {"changed_at": clock.now(), **apply(record)}
            connection.execute(update(_names).where(_names.c.name == record.name).values(**changes))
            return _by_title(connection, title)

    def rename(self, title: str, new_name: str, new_title: str, move_files: MoveFiles) -> ModelName:
        """Rename a model with all of its versions, their files, aliases and history.

        Raises:
            ModelNameTaken: Another model has the new name.
        """
        with self._database.write() as connection:
            record = _by_title(connection, title)
            if new_title != title:
                _check_free(connection, new_name, new_title)
            if new_name != record.name:
                _move(connection, record.name, new_name, move_files)
            changes = {"title": new_title, "changed_at": clock.now()}
            connection.execute(update(_names).where(_names.c.name == new_name).values(**changes))
            return _by_title(connection, new_title)

    def remove(self, title: str, by: str | None, remove_files: MoveFiles) -> None:
        """Remove a name with all of its versions and aliases; its history is kept."""
        with self._database.write() as connection:
            record = _by_title(connection, title)
            for version, stage in _versions(connection, record.name):
                remove_files(connection, version)
                values = {"name": record.name, "version": version, "what": "deleted", "before": stage}
                connection.execute(insert(_history).values(**values, by=by, at=clock.now()))
            for table in (_models, _aliases):
                connection.execute(delete(table).where(table.c.name == record.name))
            delete_name(connection, record.name)


def add_name(
    connection: Connection,
    name: str,
    title: str,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Add a name, or a deleted one again; its versions continue with the next number."""
    now = clock.now()
    values = {
        "title": title,
        "description": description,
        "tags": dict(tags or {}),
        "created_at": now,
        "changed_at": now,
    }
    if connection.execute(select(_names.c.name).where(_names.c.name == name)).first() is None:
        connection.execute(insert(_names).values(name=name, last_version=0, **values))
    else:
        connection.execute(update(_names).where(_names.c.name == name).values(deleted_at=None, **values))
    data = {"name": title, "tags": values["tags"], "description": description}
    queue_event(connection, REGISTERED_MODEL, CREATED, data)


def delete_name(connection: Connection, name: str) -> None:
    """Mark a name as deleted; its title is free for other models."""
    values = {"deleted_at": clock.now(), "title": None, "description": None, "tags": None}
    connection.execute(update(_names).where(_names.c.name == name).values(**values))


def next_version(connection: Connection, name: str, *, must_exist: bool) -> int:
    """Count the version of a name up; a name that does not exist is added unless it ``must_exist``."""
    is_name = _names.c.name == name
    row = connection.execute(select(_names.c.last_version, _names.c.deleted_at).where(is_name)).first()
    if row is None or row.deleted_at is not None:
        if must_exist:
            raise not_found(name)
        add_name(connection, name, name)
    number = (row.last_version if row else 0) + 1
    connection.execute(update(_names).where(is_name).values(last_version=number, changed_at=clock.now()))
    return int(number)


def touch_name(connection: Connection, name: str) -> None:
    """Record that the versions of a name have changed."""
    connection.execute(update(_names).where(_names.c.name == name).values(changed_at=clock.now()))


def title_of(connection: Connection, name: str) -> str:
    title: str | None = connection.execute(select(_names.c.title).where(_names.c.name == name)).scalar_one_or_none()
    return title or name


def not_found(title: str) -> ModelNotFound:
    return ModelNotFound(f"Registered Model with name={title} not found", model=title)


def _by_title(connection: Connection, title: str) -> ModelName:
    query = select(_names).where(_names.c.title == title, _names.c.deleted_at.is_(None))
    row = connection.execute(query).first()
    if row is None:
        raise not_found(title)
    return _model_name(row)


def _check_free(connection: Connection, name: str, title: str) -> None:
    is_same = (_names.c.name == name) | (_names.c.title == title)
    if connection.execute(select(_names.c.name).where(is_same, _names.c.deleted_at.is_(None))).first() is not None:
        raise ModelNameTaken(f"Registered Model (name={title}) already exists.")


def _move(connection: Connection, name: str, new_name: str, move_files: MoveFiles) -> None:
    for version, _ in _versions(connection, name):
        move_files(connection, version)
    query = select(func.max(_names.c.last_version)).where(_names.c.name.in_([name, new_name]))
    last_version = connection.execute(query).scalar_one()
    connection.execute(delete(_names).where(_names.c.name == new_name))  # one that was deleted before
    connection.execute(update(_names).where(_names.c.name == name).values(name=new_name, last_version=last_version))
    for table in (_models, _aliases, _history):
        connection.execute(update(table).where(table.c.name == name).values(name=new_name))
    for row in connection.execute(select(_models.c.name, _models.c.version, _models.c.details)).all():
        origin, _, origin_version = str(row.details.get("made_of") or "").rpartition(":")
        if origin == name:
            is_version = (_models.c.name == row.name) & (_models.c.version == row.version)
            details = {**row.details, "made_of": f"{new_name}:{origin_version}"}
            connection.execute(update(_models).where(is_version).values(details=details))


def _versions(connection: Connection, name: str) -> list[tuple[int, str]]:
    query = select(_models.c.version, _models.c.stage).where(_models.c.name == name).order_by(_models.c.version)
    return [(row.version, row.stage) for row in connection.execute(query)]


def _model_name(row: Any) -> ModelName:
    changed_at = row.created_at if row.changed_at is None else row.changed_at
    return ModelName(row.name, row.title, row.created_at, changed_at, row.description, row.tags or {})
