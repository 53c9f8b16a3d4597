"""Datastores that people registered, by name; what is on its way; and which content was seen where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.store.database import Database
from runyard.store.schema import datastores, seen_files, transfers

_KEPT_TRANSFERS = 500
_SOME = 300  # below SQLite's limit of variables
_ASKED_BY_NAME = 1000  # beyond these, a whole folder is read sooner


@dataclass(frozen=True)
class DatastoreRecord:
    name: str
    kind: str
    configuration: dict[str, Any]
    is_default: bool
    created_at: float


@dataclass(frozen=True)
class TransferRecord:
    transfer_id: str
    spec: dict[str, Any]
    state: str  # "running", "done", "failed", "canceled"
    result: dict[str, Any] | None
    created_at: float


class DatastoreStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[DatastoreRecord]:
        with self._database.read() as connection:
            rows = connection.execute(select(datastores).order_by(datastores.c.created_at))
            return [_datastore(row) for row in rows]

    def get(self, name: str) -> DatastoreRecord | None:
        with self._database.read() as connection:
            row = connection.execute(select(datastores).where(datastores.c.name == name)).first()
            return None if row is None else _datastore(row)

    def put(self, name: str, kind: str, configuration: dict[str, Any]) -> DatastoreRecord:
        """A new one, or the same name for another place: what was seen under it says nothing any more."""
        values = {"kind": kind, "configuration": configuration}
        with self._database.write() as connection:
            connection.execute(
                upsert(datastores)
                .values(name=name, is_default=0, created_at=clock.now(), **values)
                .on_conflict_do_update(index_elements=["name"], set_=values)
            )
            connection.execute(delete(seen_files).where(seen_files.c.datastore == name))
        found = self.get(name)
        assert found is not None
        return found

    def make_default(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(update(datastores).values(is_default=0))
            connection.execute(update(datastores).where(datastores.c.name == name).values(is_default=1))

    def remove(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(datastores).where(datastores.c.name == name))
            connection.execute(delete(seen_files).where(seen_files.c.datastore == name))


class SeenFiles:
    """Contents by place and mark. What is lost here is read once more, so nothing depends on it being complete."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def below(self, datastore: str, prefix: str) -> dict[str, tuple[str, str]]:
        """path -> (mark, digest), of one file or of everything below a folder."""
        if not _is_text(prefix):
            return {}
        table = seen_files
        query = select(table.c.path, table.c.mark, table.c.digest).where(table.c.datastore == datastore)
        if prefix:
            inside = (table.c.path >= f"{prefix}/") & (table.c.path < f"{prefix}0")  # "0" comes right after "/"
            query = query.where((table.c.path == prefix) | inside)
        with self._database.read() as connection:
            return {path: (mark, digest) for path, mark, digest in connection.execute(query)}

    def of(self, datastore: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """path -> (mark, digest), of these files and perhaps of others beside them."""
        if len(paths) > _ASKED_BY_NAME:
            folders = [path.rpartition("/")[0] for path in paths]
            return self.below(datastore, os.path.commonpath(folders))
        table, found = seen_files, {}
        known = [path for path in paths if _is_text(path)]
        with self._database.read() as connection:
            for begin in range(0, len(known), _SOME):
                query = select(table.c.path, table.c.mark, table.c.digest).where(
                    table.c.datastore == datastore, table.c.path.in_(known[begin : begin + _SOME])
                )
                found.update({path: (mark, digest) for path, mark, digest in connection.execute(query)})
        return found

    def add(self, datastore: str, seen: Iterable[tuple[str, str, str]]) -> None:
        """(path, mark, digest)"""
        rows = [{"datastore": datastore, "path": p, "mark": m, "digest": d} for p, m, d in seen if _is_text(p)]
        if not rows:
            return
        statement = upsert(seen_files)
        new = statement.excluded
        statement = statement.on_conflict_do_update(
            index_elements=["datastore", "path"], set_={"mark": new.mark, "digest": new.digest}
        )
        with self._database.write() as connection:
            connection.execute(statement, rows)

    def remove(self, datastore: str, paths: list[str]) -> None:
        table = seen_files
        known = [path for path in paths if _is_text(path)]
        with self._database.write() as connection:
            for begin in range(0, len(known), _SOME):
                some = known[begin : begin + _SOME]
                connection.execute(delete(table).where(table.c.datastore == datastore, table.c.path.in_(some)))


class TransferStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, transfer_id: str, spec: dict[str, Any]) -> bool:
        """False: it is here already."""
        with self._database.write() as connection:
            done = connection.execute(
                upsert(transfers)
                .values(transfer_id=transfer_id, spec=spec, state="running", created_at=clock.now())
                .on_conflict_do_nothing()
            )
            oldest = (
                select(transfers.c.created_at)
                .order_by(transfers.c.created_at.desc())
                .offset(_KEPT_TRANSFERS)
                .limit(1)
                .scalar_subquery()
            )
            connection.execute(
                delete(transfers).where(transfers.c.state != "running", transfers.c.created_at <= oldest)
            )
        return bool(done.rowcount)

    def end(self, transfer_id: str, state: str, result: dict[str, Any]) -> None:
        with self._database.write() as connection:
            connection.execute(
                update(transfers).where(transfers.c.transfer_id == transfer_id).values(state=state, result=result)
            )

    def get(self, transfer_id: str) -> TransferRecord | None:
        with self._database.read() as connection:
            row = connection.execute(select(transfers).where(transfers.c.transfer_id == transfer_id)).first()
            return None if row is None else _transfer(row)

    def newest(self, limit: int) -> list[TransferRecord]:
        with self._database.read() as connection:
            rows = connection.execute(select(transfers).order_by(transfers.c.created_at.desc()).limit(limit))
            return [_transfer(row) for row in rows]

    def running(self) -> list[TransferRecord]:
        with self._database.read() as connection:
            rows = connection.execute(select(transfers).where(transfers.c.state == "running"))
            return [_transfer(row) for row in rows]


def _datastore(row: Any) -> DatastoreRecord:
    return DatastoreRecord(row.name, row.kind, row.configuration, bool(row.is_default), row.created_at)


def _transfer(row: Any) -> TransferRecord:
    return TransferRecord(row.transfer_id, row.spec, row.state, row.result, row.created_at)


def _is_text(path: str) -> bool:
    """A name may be of bytes that are no text, which a column cannot hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
