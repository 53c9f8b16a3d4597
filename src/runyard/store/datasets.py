"""Saved datasets, by name and version or by id, and their use by runs."""

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
from runyard.spec.dataset import DatasetDefinition
from runyard.spec.json import from_json, to_json
from runyard.store.database import MAX_INTEGER, Database, batches
from runyard.store.schema import data_uses, datasets


@dataclass(frozen=True)
class Dataset:
    dataset_id: str
    name: str | None  # None: not registered
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
class DatasetUse:
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
        """Save a dataset without a name, for one that is used but not registered; reuses an equal one."""
        key = definition.key
        with self._database.write() as connection:
            query = select(datasets).where(datasets.c.definition_key == key, datasets.c.name.is_(None))
            existing = connection.execute(query.order_by(datasets.c.created_at.desc()).limit(1)).first()
            if existing is not None and (digest is None or existing.digest == digest):
                return _dataset(existing)
            return _add(connection, Dataset(_new_id(), None, None, definition, digest, files, bytes))

    def register(self, dataset: Dataset, create_new_version: bool) -> Dataset:
        """Add the next version of a name; returns the newest version if nothing would change."""
        assert dataset.name is not None
        with self._database.write() as connection:
            newest = _newest(connection, dataset.name)
            if newest is None:
                return _add(connection, _new_version(dataset, 1))
            if not create_new_version:
                raise UserErrorException(
                    f"a dataset {dataset.name!r} is already registered, in version {newest.version}",
                    hint="register(…, create_new_version=True) adds the next version; "
                    f"Dataset.get_by_name(ws, {dataset.name!r}) returns the existing one",
                )
            if newest.definition == dataset.definition and newest.digest == dataset.digest:
                return _update(connection, newest, dataset.description, dataset.tags or None)
            return _add(connection, _new_version(dataset, (newest.version or 0) + 1))

    def by_name(self, name: str, version: int | None = None) -> Dataset:
        """Return a version; the newest one by default."""
        with self._database.read() as connection:
            dataset = _newest(connection, name, version)
            if dataset is not None:
                return dataset
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
            f"no dataset {name!r} is registered",
            hint=f"registered: {', '.join(sorted(names))}"
            if names
            else "add one with dataset.register(workspace, name) or runyard datasets register NAME DATASTORE/PATH",
        )

    def by_id(self, dataset_id: str) -> Dataset:
        with self._database.read() as connection:
            row = connection.execute(select(datasets).where(datasets.c.dataset_id == dataset_id)).first()
        if row is None:
            raise UserErrorException(
                f"no dataset with the id {dataset_id!r}", hint="Dataset.get_all(ws) lists the registered ones"
            )
        return _dataset(row)

    def newest(self) -> list[Dataset]:
        """The newest version of each name, sorted by name."""
        last = select(datasets.c.name, func.max(datasets.c.version).label("version")).group_by(datasets.c.name)
        newest = last.where(datasets.c.name.is_not(None)).subquery()
        query = select(datasets).join(
            newest, (datasets.c.name == newest.c.name) & (datasets.c.version == newest.c.version)
        )
        with self._database.read() as connection:
            return [_dataset(row) for row in connection.execute(query.order_by(datasets.c.name))]

    def versions(self, name: str) -> list[Dataset]:
        """All versions of a name, newest first."""
        self.by_name(name)
        query = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc())
        with self._database.read() as connection:
            return [_dataset(row) for row in connection.execute(query)]

    def change(self, dataset_id: str, description: str | None, tags: dict[str, str | None] | None) -> Dataset:
        """Change description and tags; None leaves a field unchanged."""
        with self._database.write() as connection:
            return _update(connection, self.by_id(dataset_id), description, tags)

    def unregister(self, name: str) -> None:
        """Remove the name from all of its versions. They stay accessible by id, for the runs that used them."""
        self.by_name(name)
        with self._database.write() as connection:
            connection.execute(update(datasets).where(datasets.c.name == name).values(name=None, version=None))

    def record_uses(self, run_id: str, uses: Sequence[DataUse]) -> None:
        rows = [_use_row(run_id, use) for use in uses]
        if rows:
            with self._database.write() as connection:
                connection.execute(upsert(data_uses).on_conflict_do_nothing(), rows)

    def uses_by_runs(self, run_ids: Iterable[str]) -> list[DatasetUse]:
        return self._uses(data_uses.c.run_id, run_ids)

    def uses_of_datasets(self, dataset_ids: Iterable[str]) -> list[DatasetUse]:
        return self._uses(data_uses.c.dataset_id, dataset_ids)

    def _uses(self, column: Any, values: Iterable[str]) -> list[DatasetUse]:
        uses = []
        with self._database.read() as connection:
            for batch in batches(values):
                query = select(data_uses).where(column.in_(batch))
                uses += [DatasetUse(**row._mapping) for row in connection.execute(query)]
        return uses


def _newest(connection: Connection, name: str, version: int | None = None) -> Dataset | None:
    query = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc()).limit(1)
    if version is not None:
        query = query.where(datasets.c.version == (version if abs(version) < MAX_INTEGER else -1))
    row = connection.execute(query).first()
    return None if row is None else _dataset(row)


def _new_version(dataset: Dataset, version: int) -> Dataset:
    return replace(dataset, dataset_id=_new_id(), version=version)


def _add(connection: Connection, dataset: Dataset) -> Dataset:
    saved = replace(dataset, created_at=clock.now())
    values = {name: value for name, value in vars(saved).items() if name != "definition"}
    connection.execute(
        insert(datasets).values(
            kind=saved.definition.kind,
            definition=to_json(saved.definition),
            definition_key=saved.definition.key,
            **values,
        )
    )
    return saved


def _update(
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
    return Dataset(**{**values, "definition": from_json(DatasetDefinition, values["definition"])})


def _use_row(run_id: str, use: DataUse) -> dict[str, Any]:
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
