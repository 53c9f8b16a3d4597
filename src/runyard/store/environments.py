"""Registered environment definitions, by name and version."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select

from runyard import clock
from runyard.errors import UserErrorException
from runyard.store.database import Database
from runyard.store.schema import registered_environments as table


class RegisteredEnvironments:
    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, name: str, definition: dict[str, Any]) -> dict[str, Any]:
        """Return the newest version if its definition is equal; otherwise add the next version."""
        with self._database.write() as connection:
            newest = connection.execute(
                select(table).where(table.c.name == name).order_by(table.c.version.desc()).limit(1)
            ).first()
            if newest is not None and newest.definition == definition:
                return _view(newest)
            version = newest.version + 1 if newest is not None else 1
            connection.execute(
                insert(table).values(name=name, version=version, definition=definition, created_at=clock.now())
            )
        return {"name": name, "version": str(version), "definition": definition}

    def get(self, name: str, version: int | None = None) -> dict[str, Any]:
        query = select(table).where(table.c.name == name).order_by(table.c.version.desc()).limit(1)
        if version is not None:
            query = query.where(table.c.version == version)
        with self._database.read() as connection:
            row = connection.execute(query).first()
            if row is None:
                names = [r.name for r in connection.execute(select(table.c.name).distinct())]
                environment = f"{name!r}" if version is None else f"{name!r} in version {version}"
                raise UserErrorException(
                    f"no environment {environment} is registered",
                    hint=f"registered: {', '.join(sorted(names))}" if names else "env.register(workspace) adds one",
                )
        return _view(row)

    def list(self) -> list[dict[str, Any]]:
        """The newest version of each environment."""
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.name, table.c.version))
            return list({row.name: _view(row) for row in rows}.values())


def _view(row: Any) -> dict[str, Any]:
    return {"name": row.name, "version": str(row.version), "definition": row.definition}
