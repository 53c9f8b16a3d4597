"""Registered datastores, transfers, and digests of files in datastores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.store.database import Database, batches
from runyard.store.schema import datastores, seen_files, transfers

_MAX_TRANSFERS = 500
_MAX_PATHS = 1000  # for more paths, reading their complete folder is faster
_SELECT_DIGESTS = select(seen_files.c.path, seen_files.c.mark, seen_files.c.digest)


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
        """Add or replace a datastore. Digests under its name are dropped: it may refer to another location now."""
        values = {"kind": kind, "configuration": configuration}
        with self._database.write() as connection:
            connection.execute(
                upsert(datastores)
                .values(name=name, is_default=0, created_at=clock.now(), **values)
                .on_conflict_do_update(index_elements=["name"], set_=values)
            )
            connection.execute(delete(seen_files).where(seen_files.c.datastore == name))
        record = self.get(name)
        assert record is not None
        return record

    def make_default(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(update(datastores).values(is_default=0))
            connection.execute(update(datastores).where(datastores.c.name == name).values(is_default=1))

    def remove(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(datastores).where(datastores.c.name == name))
            connection.execute(delete(seen_files).where(seen_files.c.datastore == name))


class FileDigests:
    """Digests of files by path and mark (an ETag, or size and modification time).

    It is a cache: a file without an entry is read again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def in_folder(self, datastore: str, prefix: str) -> dict[str, tuple[str, str]]:
        """Map paths to (mark, digest), for one file or for all files below a folder."""
        if not _is_valid_text(prefix):
            return {}
        table = seen_files
        query = _SELECT_DIGESTS.where(table.c.datastore == datastore)
        if prefix:
            inside = (table.c.path >= f"{prefix}/") & (table.c.path < f"{prefix}0")  # "0" follows "/" in ASCII
            query = query.where((table.c.path == prefix) | inside)
        with self._database.read() as connection:
            return {path: (mark, digest) for path, mark, digest in connection.execute(query)}

    def for_paths(self, datastore: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Map paths to (mark, digest), for these files and possibly others in the same folder."""
        if len(paths) > _MAX_PATHS:
            folders = [path.rpartition("/")[0] for path in paths]
            return self.in_folder(datastore, os.path.commonpath(folders))
        digests = {}
        with self._database.read() as connection:
            for batch in batches(path for path in paths if _is_valid_text(path)):
                query = _SELECT_DIGESTS.where(seen_files.c.datastore == datastore, seen_files.c.path.in_(batch))
                digests.update({path: (mark, digest) for path, mark, digest in connection.execute(query)})
        return digests

    def add(self, datastore: str, files: Iterable[tuple[str, str, str]]) -> None:
        """Record (path, mark, digest) of each file."""
        rows = [{"datastore": datastore, "path": p, "mark": m, "digest": d} for p, m, d in files if _is_valid_text(p)]
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
        with self._database.write() as connection:
            for batch in batches(path for path in paths if _is_valid_text(path)):
                connection.execute(delete(table).where(table.c.datastore == datastore, table.c.path.in_(batch)))


class TransferStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, transfer_id: str, spec: dict[str, Any]) -> bool:
        """Add a running transfer; False if the id exists. The oldest finished transfers are deleted."""
        with self._database.write() as connection:
            inserted = connection.execute(
                upsert(transfers)
                .values(transfer_id=transfer_id, spec=spec, state="running", created_at=clock.now())
                .on_conflict_do_nothing()
            )
            oldest = (
                select(transfers.c.created_at)
                .order_by(transfers.c.created_at.desc())
                .offset(_MAX_TRANSFERS)
                .limit(1)
                .scalar_subquery()
            )
            connection.execute(
                delete(transfers).where(transfers.c.state != "running", transfers.c.created_at <= oldest)
            )
        return bool(inserted.rowcount)

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


def _is_valid_text(path: str) -> bool:
    """False for file names with invalid Unicode, which a text column cannot store."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
