"""Datasets that people saved, by name and version or by id, and which run was given which of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.errors import UserErrorException
from runyard.spec.data import DataUse
from runyard.spec.dataset import DatasetDefinition, from_stored
from runyard.spec.json import to_json
from runyard.store.database import Database
from runyard.store.schema import data_uses, datasets

_SOME = 500  # below SQLite's limit of variables
BEYOND_ALL = 1 << 62


@dataclass(frozen=True)
class Dataset:
    dataset_id: str
    name: str | None  # None: never registered, or not any more
    version: int | None
    definition: DatasetDefinition
    digest: str | None = None
    files: int | None = None
    bytes: int | None = None
    description: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    run_id: str | None = None
    created_at: float = 0.0


@dataclass(frozen=True)
class Used:
    run_id: str
    name: str  # of the input
    mode: str
    datastore: str
    path: str
    dataset_id: str | None
    dataset_name: str | None
    dataset_version: int | None
    digest: str | None


class DatasetStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, definition: DatasetDefinition, digest: str | None, files: int | None, bytes: int | None) -> Dataset:
        """Without a name: what is used but was never registered. The same one again is found, not made."""
        key = definition.key
        with self._database.write() as connection:
            query = select(datasets).where(datasets.c.definition_key == key, datasets.c.name.is_(None))
            known = connection.execute(query.order_by(datasets.c.created_at.desc()).limit(1)).first()
            if known is not None and (digest is None or known.digest == digest):
                return _dataset(known)
            return _add(connection, Dataset(_new_id(), None, None, definition, digest, files, bytes))

    def register(self, wanted: Dataset, create_new_version: bool) -> Dataset:
        """The next version of a name. The newest one itself, where nothing about it would be new."""
        assert wanted.name is not None
        with self._database.write() as connection:
            newest = _newest(connection, wanted.name)
            if newest is None:
                return _add(connection, _numbered(wanted, 1))
            if not create_new_version:
                raise UserErrorException(
                    f"a dataset {wanted.name!r} is registered already, in version {newest.version}",
                    hint="register(…, create_new_version=True) makes the next version; "
                    f"Dataset.get_by_name(ws, {wanted.name!r}) gives the one that is there",
                )
            if newest.definition == wanted.definition and newest.digest == wanted.digest:
                return _changed(connection, newest, wanted.description, wanted.tags or None)
            return _add(connection, _numbered(wanted, (newest.version or 0) + 1))

    def by_name(self, name: str, version: int | None = None) -> Dataset:
        """The newest version, or that one."""
        with self._database.read() as connection:
            found = _newest(connection, name, version)
            if found is not None:
                return found
            versions = [
                row.version for row in connection.execute(select(datasets.c.version).where(datasets.c.name == name))
            ]
            names = [row.name for row in connection.execute(select(datasets.c.name).distinct()) if row.name]
        if versions:
            raise UserErrorException(
                f"the dataset {name!r} has no version {version}",
                hint=f"its versions: {', '.join(map(str, sorted(versions)))}",
            )
        raise UserErrorException(
            f"no dataset {name!r} is registered here",
            hint=f"registered: {', '.join(sorted(names))}"
            if names
            else "dataset.register(workspace, name), or runyard datasets register NAME DATASTORE/PATH, adds one",
        )

    def by_id(self, dataset_id: str) -> Dataset:
        with self._database.read() as connection:
            row = connection.execute(select(datasets).where(datasets.c.dataset_id == dataset_id)).first()
        if row is None:
            raise UserErrorException(
                f"there is no dataset with the id {dataset_id!r}", hint="Dataset.get_all(ws) has those with a name"
            )
        return _dataset(row)

    def some(self, ids: Iterable[str]) -> dict[str, Dataset]:
        wanted = list(dict.fromkeys(ids))
        found: dict[str, Dataset] = {}
        with self._database.read() as connection:
            for begin in range(0, len(wanted), _SOME):
                query = select(datasets).where(datasets.c.dataset_id.in_(wanted[begin : begin + _SOME]))
                found.update((row.dataset_id, _dataset(row)) for row in connection.execute(query))
        return found

    def newest(self) -> list[Dataset]:
        """The newest version of each name, by name."""
        last = select(datasets.c.name, func.max(datasets.c.version).label("version")).group_by(datasets.c.name)
        newest = last.where(datasets.c.name.is_not(None)).subquery()
        query = select(datasets).join(
            newest, (datasets.c.name == newest.c.name) & (datasets.c.version == newest.c.version)
        )
        with self._database.read() as connection:
            return [_dataset(row) for row in connection.execute(query.order_by(datasets.c.name))]

    def versions(self, name: str) -> list[Dataset]:
        """All of a name, the newest first."""
        self.by_name(name)
        query = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc())
        with self._database.read() as connection:
            return [_dataset(row) for row in connection.execute(query)]

    def change(self, dataset_id: str, description: str | None, tags: dict[str, str | None] | None) -> Dataset:
        """None leaves it as it is."""
        with self._database.write() as connection:
            return _changed(connection, self.by_id(dataset_id), description, tags)

    def unregister(self, name: str) -> None:
        """All versions of the name. The datasets are still found by their ids, as runs that used them need."""
        self.by_name(name)
        with self._database.write() as connection:
            connection.execute(update(datasets).where(datasets.c.name == name).values(name=None, version=None))

    def note_uses(self, run_id: str, uses: Sequence[DataUse]) -> None:
        rows = [_row_of_use(run_id, use) for use in uses]
        if rows:
            with self._database.write() as connection:
                connection.execute(upsert(data_uses).on_conflict_do_nothing(), rows)

    def uses_of(self, run_ids: Iterable[str]) -> list[Used]:
        return self._uses(data_uses.c.run_id, run_ids)

    def uses_of_datasets(self, dataset_ids: Iterable[str]) -> list[Used]:
        return self._uses(data_uses.c.dataset_id, dataset_ids)

    def saved_by(self, run_ids: Iterable[str]) -> list[Dataset]:
        """What the scripts of these runs registered."""
        wanted, found = list(dict.fromkeys(run_ids)), []
        with self._database.read() as connection:
            for begin in range(0, len(wanted), _SOME):
                query = select(datasets).where(datasets.c.run_id.in_(wanted[begin : begin + _SOME]))
                found += [_dataset(row) for row in connection.execute(query.order_by(datasets.c.created_at))]
        return found

    def _uses(self, column: Any, values: Iterable[str]) -> list[Used]:
        wanted, found = list(dict.fromkeys(values)), []
        with self._database.read() as connection:
            for begin in range(0, len(wanted), _SOME):
                query = select(data_uses).where(column.in_(wanted[begin : begin + _SOME]))
                found += [Used(**row._mapping) for row in connection.execute(query)]
        return found


def _newest(connection: Connection, name: str, version: int | None = None) -> Dataset | None:
    query = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc()).limit(1)
    if version is not None:  # one that SQLite cannot even be asked for is not there either
        query = query.where(datasets.c.version == (version if abs(version) < BEYOND_ALL else -1))
    row = connection.execute(query).first()
    return None if row is None else _dataset(row)


def _numbered(dataset: Dataset, version: int) -> Dataset:
    return replace(dataset, dataset_id=_new_id(), version=version)


def _add(connection: Connection, dataset: Dataset) -> Dataset:
    made = replace(dataset, created_at=clock.now())
    values = {name: value for name, value in vars(made).items() if name != "definition"}
    connection.execute(
        insert(datasets).values(
            kind=made.definition.kind,
            definition=to_json(made.definition),
            definition_key=made.definition.key,
            **values,
        )
    )
    return made


def _changed(
    connection: Connection, dataset: Dataset, description: str | None, tags: dict[str, str | None] | None
) -> Dataset:
    values: dict[str, Any] = {}
    if description is not None:
        values["description"] = description
    if tags is not None:
        values["tags"] = tags
    if values:
        connection.execute(update(datasets).where(datasets.c.dataset_id == dataset.dataset_id).values(**values))
    return replace(dataset, **values)


def _new_id() -> str:
    return str(uuid.uuid4())


def _dataset(row: Row[Any]) -> Dataset:
    values = {name: value for name, value in row._mapping.items() if name not in ("kind", "definition_key")}
    return Dataset(**{**values, "definition": from_stored(values["definition"])})


def _row_of_use(run_id: str, use: DataUse) -> dict[str, Any]:
    dataset = use.dataset
    return {
        "run_id": run_id,
        "name": use.name,
        "mode": use.mode,
        "datastore": use.datastore,
        "path": use.path,
        "dataset_id": dataset.id if dataset else None,
        "dataset_name": dataset.name if dataset else None,
        "dataset_version": dataset.version if dataset else None,
        "digest": dataset.digest if dataset else None,
    }
