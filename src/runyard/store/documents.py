"""JSON documents by kind and id, each owned by an experiment or a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard import clock
from runyard.store.database import Database, batches
from runyard.store.schema import documents as table

EXPERIMENT, INPUTS, MODEL = "experiment", "inputs", "model"


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

    def find(self, kind: str, owners: Iterable[str] | None = None) -> list[Document]:
        """All documents of a kind, or those of the given owners, oldest first."""
        query = select(table).where(table.c.kind == kind).order_by(table.c.created_at)
        queries = [query] if owners is None else [query.where(table.c.owner.in_(batch)) for batch in batches(owners)]
        with self._database.read() as connection:
            return [_document(row) for query in queries for row in connection.execute(query)]

    def change(self, kind: str, id: str, owner: str, apply: Callable[[dict[str, Any]], dict[str, Any]]) -> Document:
        """Replace the content by the result of ``apply``, which gets the old one (or {}), in one transaction."""
        with self._database.write() as connection:
            return change_document(connection, kind, id, owner, apply)

    def remove(self, kind: str, id: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.kind == kind, table.c.id == id))


def change_document(
    connection: Connection, kind: str, id: str, owner: str, apply: Callable[[dict[str, Any]], dict[str, Any]]
) -> Document:
    """Like :meth:`Documents.change`, in the caller's transaction."""
    existing = _get(connection, kind, id)
    content = apply(existing.content if existing else {})
    document = Document(id, owner, content, existing.created_at if existing else clock.now())
    put_document(connection, kind, document)
    return document


def put_document(connection: Connection, kind: str, document: Document) -> None:
    """Add or replace a document in the caller's transaction."""
    values = {"owner": document.owner, "content": document.content}
    statement = upsert(table).values(kind=kind, id=document.id, created_at=document.created_at, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["kind", "id"], set_=values))


def _get(connection: Connection, kind: str, id: str) -> Document | None:
    row = connection.execute(select(table).where(table.c.kind == kind, table.c.id == id)).first()
    return None if row is None else _document(row)


def _document(row: Any) -> Document:
    return Document(row.id, row.owner, row.content, row.created_at)
