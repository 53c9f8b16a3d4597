"""Compute targets that users created or attached, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from runyard import clock
from runyard.store.database import Database
from runyard.store.schema import computes as table


@dataclass(frozen=True)
class ComputeRecord:
    name: str
    kind: str
    configuration: dict[str, Any]
    created_at: float


class ComputeStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ComputeRecord]:
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(select(table).order_by(table.c.created_at))]

    def add(self, name: str, kind: str, configuration: dict[str, Any]) -> ComputeRecord:
        record = ComputeRecord(name, kind, configuration, clock.now())
        with self._database.write() as connection:
            connection.execute(
                insert(table).values(name=name, kind=kind, configuration=configuration, created_at=record.created_at)
            )
        return record

    def change(self, name: str, configuration: dict[str, Any]) -> None:
        with self._database.write() as connection:
            connection.execute(update(table).where(table.c.name == name).values(configuration=configuration))

    def remove(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.name == name))


def _record(row: Any) -> ComputeRecord:
    return ComputeRecord(row.name, row.kind, row.configuration, row.created_at)
