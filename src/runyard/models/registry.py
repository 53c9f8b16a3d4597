"""The registry: register, find, label, approve and delete model versions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from runyard import clock
from runyard.errors import ModelInUse, UserErrorException, WebserviceException
from runyard.models.files import select_run_files, upload_owner
from runyard.models.lineage import model_origin
from runyard.orchestrator.components import Components
from runyard.store.models import Alias, HistoryEntry, ModelRecord, ModelStore
from runyard.tracking.artifacts import Artifact, FileSource, delete_records, record
from runyard.wire.models import ChangeModel, RegisterModel

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
ALIAS = re.compile(r"(?!latest$)[A-Za-z][A-Za-z0-9._-]{0,63}")
STAGES = ("none", "candidate", "approved", "rejected", "archived")

Users = Mapping[tuple[str, int], Iterable[str]]  # services by model name and version


class Models:
    """The models of a yard. All state is in the database, so several instances are equivalent."""

    def __init__(self, components: Components) -> None:
        self._artifacts = components.artifacts
        self._components = components
        self._store = ModelStore(components.database)
        self._users: Callable[[], Users] = dict

    def set_user_lookup(self, users: Callable[[], Users]) -> None:
        """Set the function that returns the services by the versions that they use, which must not be deleted."""
        self._users = users

    def register(self, request: RegisterModel) -> ModelRecord:
        """Register a model. Stored files of a run are neither copied nor read again."""
        existing = self._store.by_registration_id(request.registration_id)
        if existing is not None:
            return existing
        _check_name(request.name)
        if (request.upload_id is None) == (request.run_path is None):
            raise UserErrorException("expected either upload_id or run_path for the files of a model")
        if request.framework_version and not request.framework:
            raise WebserviceException("a model_framework_version needs a model_framework")
        files = self._hold_files(request)
        try:
            return self._add(request, files)
        finally:
            self._artifacts.release(files)

    def get(self, name: str, version: int | str | None = None) -> ModelRecord:
        """Return a version by number or alias; the latest by default."""
        return self._store.get(name, version)

    def find(self, text: str) -> ModelRecord:
        """Parse and return a reference such as ``digits``, ``digits:3`` or ``digits:champion``."""
        name, _, version = text.partition(":")
        return self._store.get(name, version or None)

    def search(
        self,
        *,
        name: str | None = None,
        run_id: str | None = None,
        framework: str | None = None,
        stage: str | None = None,
        tags: Mapping[str, str | None] | None = None,
        properties: Mapping[str, str | None] | None = None,
        dataset_id: str | None = None,
        latest: bool = False,
    ) -> list[ModelRecord]:
        """List matching versions by name, newest first.

        Args:
            tags, properties: Required labels; the value None matches any value of the key.
            latest: Only the newest matching version of each name.
        """
        if stage is not None:
            _check_stage(stage)  # otherwise a mistyped stage would silently match nothing
        matches = [
            model
            for model in self._store.find(name=name, run_id=run_id)
            if (framework is None or model.framework == framework)
            and (stage is None or model.stage == stage)
            and _has_labels(model.tags, tags or {})
            and _has_labels(model.properties, properties or {})
            and (dataset_id is None or dataset_id in _dataset_ids(model))
        ]
        if not latest:
            return matches
        newest: dict[str, ModelRecord] = {}
        for model in matches:
            newest.setdefault(model.name, model)
        return list(newest.values())

    def aliases(self, name: str | None = None) -> dict[str, list[Alias]]:
        return self._store.aliases(name)

    def history(self, name: str, version: int | None = None) -> list[HistoryEntry]:
        return self._store.history(name, version)

    def users(self) -> Users:
        return self._users()

    def files(self, name: str, version: int) -> list[Artifact]:
        return self._artifacts.files(_owner(self._store.get(name, version)))

    def source_of(self, name: str, version: int, path: str) -> FileSource:
        """The stored content, which must not be written to. Readers verify it."""
        paths = [file.path for file in self.files(name, version)]
        if path not in paths:
            listing = ", ".join(paths[:10]) + (", …" if len(paths) > 10 else "")
            raise UserErrorException(f"{name}:{version} has no file {path!r}", hint=f"its files: {listing}")
        return self._artifacts.source_of(_owner(self._store.get(name, version)), path)

    def change(self, name: str, version: int, request: ChangeModel) -> ModelRecord:
        def apply(model: ModelRecord) -> dict[str, Any]:
            for key, value in request.properties.items():
                if model.properties.get(key, value) != value:
                    raise UserErrorException(
                        f"property {key!r} of {model.id} is already {model.properties[key]!r} and cannot be changed",
                        hint="properties cannot be overwritten; use a tag for values that change",
                    )
            tags = {key: value for key, value in model.tags.items() if key not in request.remove_tags}
            datasets = [*model.details.get("datasets", []), *request.datasets]
            details = {**model.details, **request.details, **({"datasets": datasets} if datasets else {})}
            columns: dict[str, Any] = {
                "tags": {**tags, **request.tags},
                "properties": {**model.properties, **request.properties},
                "details": details,
            }
            return columns if request.description is None else {**columns, "description": request.description}

        return self._store.change(name, version, apply)

    def set_stage(self, name: str, version: int, stage: str, *, by: str | None, note: str | None = None) -> ModelRecord:
        _check_stage(stage)
        return self._store.set_stage(name, version, stage, by, note)

    def set_alias(self, name: str, alias: str, version: int, *, by: str | None) -> None:
        """Point an alias to this version; another version of the name loses it."""
        if not ALIAS.fullmatch(alias):
            raise UserErrorException(
                f"invalid alias {alias!r}",
                hint="use letters, digits, '.', '_' and '-', starting with a letter; 'latest' is reserved",
            )
        self._store.set_alias(name, alias, version, by)

    def remove_alias(self, name: str, alias: str, *, by: str | None) -> None:
        self._store.get(name)
        self._store.remove_alias(name, alias, by)

    def delete(self, name: str, version: int, *, by: str | None) -> None:
        model = self._store.get(name, version)
        users = sorted(self.users().get((name, version), ()))
        if users:
            services = ", ".join(map(repr, users))
            raise ModelInUse(
                f"{model.id} is used by {'the service' if len(users) == 1 else 'the services'} {services}",
                hint="delete the service or deploy another version to it first",
                model=model.id,
            )
        files = self._artifacts.files(_owner(model))
        self._store.remove(name, version, by, lambda connection: delete_records(connection, _owner(model)))
        self._artifacts.remove_unreferenced(files)

    def _add(self, request: RegisterModel, files: Sequence[Artifact]) -> ModelRecord:
        lineage = model_origin(self._components, request.run_id) if request.run_id else {}
        details = {**request.details}
        if request.datasets:
            details["datasets"] = request.datasets
        if request.made_of:
            details["made_of"] = self.find(request.made_of).id
        now = clock.now()

        def build(version: int) -> ModelRecord:
            return ModelRecord(
                name=request.name,
                version=version,
                registration_id=request.registration_id,
                stage=STAGES[0],
                digest=_digest(files),
                size=sum(file.size for file in files),
                created_at=now,
                changed_at=now,
                description=request.description,
                framework=request.framework,
                framework_version=request.framework_version,
                created_by=request.registered_by,
                tags=request.tags,
                properties=request.properties,
                details=details,
                **lineage,
            )

        def add_files(connection: Connection, model: ModelRecord) -> None:
            record(connection, _owner(model), files)
            if request.upload_id is not None:
                delete_records(connection, upload_owner(request.upload_id))

        return self._store.add(request.name, request.registration_id, build, add_files)

    def _hold_files(self, request: RegisterModel) -> Sequence[Artifact]:
        """Return the files of the request and protect them from deletion; the caller must release them."""
        if request.upload_id is not None:
            files = self._artifacts.files(upload_owner(request.upload_id))
            if not files:
                raise UserErrorException(f"no files were uploaded for the model {request.name!r}")
            self._artifacts.hold(files)
            return files
        if request.run_id is None:
            raise UserErrorException("run_path requires run_id")
        return select_run_files(self._components, request.run_id, request.run_path or "")


def _owner(model: ModelRecord) -> str:
    """The owner of the model's files; cannot equal a run id, which has no colon."""
    return f"model:{model.name}:{model.version}"


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise WebserviceException(
            f"invalid model name {name!r}",
            hint="use at most 255 letters, digits, '.', '_' and '-', starting with a letter or digit",
        )


def _digest(files: Sequence[Artifact]) -> str:
    text = "".join(f"{file.digest}  {file.path}\n" for file in sorted(files, key=lambda file: file.path))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _check_stage(stage: str) -> None:
    if stage not in STAGES:
        raise UserErrorException(f"unknown stage {stage!r}", hint=f"use one of {', '.join(STAGES)}")


def _has_labels(labels: Mapping[str, str | None], required: Mapping[str, str | None]) -> bool:
    return all(key in labels and (value is None or labels[key] == value) for key, value in required.items())


def _dataset_ids(model: ModelRecord) -> set[str]:
    declared = [dataset.get("id") for dataset in model.details.get("datasets", [])]
    return {str(id) for id in [*declared, *(use.get("dataset_id") for use in model.data)] if id}
