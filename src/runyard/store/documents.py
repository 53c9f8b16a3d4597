"""Small JSON documents by kind and id, each belonging to an experiment or a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.store.database import Database
from runyard.store.schema import documents as table

EXPERIMENT, INPUTS, MODEL = "experiment", "inputs", "model"
_SOME = 500  # below SQLite's limit of variables


@dataclass(frozen=True)
class Document:
    id: str
    owner: str
    content: dict[str, Any]
    created_at: float


class Documents:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, kind: str, id: str) -> Document | None:
        with self._database.read() as connection:
            return _get(connection, kind, id)

    def of(self, kind: str, owners: Sequence[str] | None = None) -> list[Document]:
        """All of a kind, or those of some owners, oldest first."""
        found: list[Document] = []
        query = select(table).where(table.c.kind == kind).order_by(table.c.created_at)
        with self._database.read() as connection:
            if owners is None:
                return [_document(row) for row in connection.execute(query)]
            for begin in range(0, len(owners), _SOME):
                some = query.where(table.c.owner.in_(owners[begin : begin + _SOME]))
                found += [_document(row) for row in connection.execute(some)]
        return found

    def change(self, kind: str, id: str, owner: str, how: Callable[[dict[str, Any]], dict[str, Any]]) -> Document:
        """Made of what was there (empty when nothing was), in one transaction."""
        with self._database.write() as connection:
            before = _get(connection, kind, id)
            content = how(before.content if before else {})
            values = {"owner": owner, "content": content}
            created_at = before.created_at if before else clock.now()
            statement = upsert(table).values(kind=kind, id=id, created_at=created_at, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["kind", "id"], set_=values))
        return Document(id, owner, content, created_at)

    def remove(self, kind: str, id: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.kind == kind, table.c.id == id))


def _get(connection: Connection, kind: str, id: str) -> Document | None:
    row = connection.execute(select(table).where(table.c.kind == kind, table.c.id == id)).first()
    return None if row is None else _document(row)


def _document(row: Any) -> Document:
    return Document(row.id, row.owner, row.content, row.created_at)
