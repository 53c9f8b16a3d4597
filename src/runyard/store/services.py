"""Records of web services, their versions, and images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from runyard import clock
from runyard.errors import WebserviceException
from runyard.store.database import Database
from runyard.store.schema import images, service_versions, services

RETIRED = "Retired"  # state of a version that no longer serves


class ServiceNotFound(WebserviceException):
    """A WebserviceException, as in SDK v1, with HTTP status 404."""


@dataclass(frozen=True)
class ServiceRecord:
    name: str
    kind: str
    state: str
    configuration: dict[str, Any]
    created_at: float
    changed_at: float
    error: str = ""
    description: str | None = None
    tags: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    traffic: dict[str, int] = field(default_factory=dict)
    last_version: int = 0
    created_by: str | None = None


@dataclass(frozen=True)
class VersionRecord:
    name: str
    version: int
    state: str
    models: list[list[Any]]  # [name, version] each
    spec: dict[str, Any]
    created_at: float
    error: str = ""
    environment_key: str | None = None


@dataclass(frozen=True)
class ImageRecord:
    name: str
    version: int
    models: list[list[Any]]
    spec: dict[str, Any]
    created_at: float
    description: str | None = None
    tags: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)


class ServiceStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ServiceRecord]:
        with self._database.read() as connection:
            rows = connection.execute(select(services).order_by(services.c.created_at))
            return [ServiceRecord(**row._mapping) for row in rows]

    def find(self, name: str) -> ServiceRecord | None:
        with self._database.read() as connection:
            row = connection.execute(select(services).where(services.c.name == name)).first()
        return None if row is None else ServiceRecord(**row._mapping)

    def get(self, name: str) -> ServiceRecord:
        record = self.find(name)
        if record is None:
            names = [service.name for service in self.all()]
            raise ServiceNotFound(
                f"no service named {name!r}",
                hint=f"existing services: {', '.join(names)}" if names else "create one with Model.deploy",
            )
        return record

    def add(self, record: ServiceRecord) -> bool:
        """Add a service; False if the name is taken."""
        with self._database.write() as connection:
            if connection.execute(select(services.c.name).where(services.c.name == record.name)).first() is not None:
                return False
            connection.execute(insert(services).values(**vars(record)))
        return True

    def change(self, name: str, **values: Any) -> ServiceRecord:
        with self._database.write() as connection:
            changed = {**values, "changed_at": clock.now()}
            connection.execute(update(services).where(services.c.name == name).values(**changed))
        return self.get(name)

    def remove(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(services).where(services.c.name == name))
            connection.execute(delete(service_versions).where(service_versions.c.name == name))

    def add_version(self, name: str, models: list[list[Any]], spec: dict[str, Any]) -> VersionRecord:
        """Add the next version; version numbers of a service are never reused."""
        with self._database.write() as connection:
            row = connection.execute(select(services.c.last_version).where(services.c.name == name)).one()
            record = VersionRecord(name, row.last_version + 1, "Transitioning", models, spec, clock.now())
            connection.execute(insert(service_versions).values(**vars(record)))
            connection.execute(
                update(services)
                .where(services.c.name == name)
                .values(last_version=record.version, state="Transitioning")
            )
        return record

    def versions(self, name: str | None = None) -> list[VersionRecord]:
        query = select(service_versions).order_by(service_versions.c.name, service_versions.c.version)
        if name is not None:
            query = query.where(service_versions.c.name == name)
        with self._database.read() as connection:
            return [VersionRecord(**row._mapping) for row in connection.execute(query)]

    def environments_in_use(self) -> set[str]:
        return {v.environment_key for v in self.versions() if v.environment_key and v.state != RETIRED}

    def change_version(self, name: str, version: int, **values: Any) -> None:
        with self._database.write() as connection:
            connection.execute(
                update(service_versions)
                .where(service_versions.c.name == name, service_versions.c.version == version)
                .values(**values)
            )

    def remove_version(self, name: str, version: int) -> None:
        with self._database.write() as connection:
            connection.execute(
                delete(service_versions).where(service_versions.c.name == name, service_versions.c.version == version)
            )


class ImageStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, **values: Any) -> ImageRecord:
        with self._database.write() as connection:
            version = _newest(connection, name) + 1
            record = ImageRecord(name=name, version=version, created_at=clock.now(), **values)
            connection.execute(insert(images).values(**vars(record)))
        return record

    def all(self) -> list[ImageRecord]:
        with self._database.read() as connection:
            rows = connection.execute(select(images).order_by(images.c.created_at))
            return [ImageRecord(**row._mapping) for row in rows]

    def get(self, name: str, version: int | None = None) -> ImageRecord:
        versions = [image for image in self.all() if image.name == name and version in (None, image.version)]
        if not versions:
            image = repr(name) if version is None else f"{name!r} in version {version}"
            raise WebserviceException(f"no image {image}", hint="create one with Image.create")
        return versions[-1]

    def change(self, name: str, version: int, apply: Callable[[ImageRecord], Mapping[str, Any]]) -> ImageRecord:
        """Set the columns that ``apply`` returns for the old record, in one transaction."""
        with self._database.write() as connection:
            values = apply(self.get(name, version))
            if values:
                is_version = (images.c.name == name) & (images.c.version == version)
                connection.execute(update(images).where(is_version).values(**values))
        return self.get(name, version)

    def remove(self, name: str, version: int) -> None:
        with self._database.write() as connection:
            connection.execute(delete(images).where(images.c.name == name, images.c.version == version))


def _newest(connection: Connection, name: str) -> int:
    rows = connection.execute(select(images.c.version).where(images.c.name == name))
    return max((row.version for row in rows), default=0)
